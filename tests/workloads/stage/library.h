// For programs that are built twice: with -DLIBRARY as a library, and without as the program that opens it beside itself.

#ifndef STAGE_LIBRARY_H
#define STAGE_LIBRARY_H

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The library beside the program, or NULL, with the reason on standard error.
static inline void *open_library(void) {
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 4);
    if (len < 0)
        return NULL;
    memcpy(path + len, ".so", 4);
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL)
        fprintf(stderr, "%s\n", dlerror());
    return library;
}

#endif
