// What the workloads of code without a file share: functions of the program are copied into anonymous memory, as a
// just-in-time compiler puts its code there, and files tell of them. A function that is copied refers to nothing by
// its own address, and has a section of its own, so that its size is known.

#ifndef JIT_H
#define JIT_H

#include "stage.h"
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// For functions to be copied.
#define COMPILED(name) __attribute__((noinline, used, section(#name "_code")))
// Declares the section of one.
#define SECTION_OF(name) extern const char __start_##name##_code[], __stop_##name##_code[]
// Copies one.
#define COMPILE(name) compile(#name, __start_##name##_code, __stop_##name##_code)

typedef uintptr_t (*counting)(unsigned long *counter, const int *stop);

struct compiled {
    const char *name;
    char *start;
    size_t size;
};

// The code cache.
static char *cache_next, *cache_end;

static inline struct compiled compile(const char *name, const char *start, const char *stop) {
    size_t size = (size_t)(stop - start);
    if (cache_next == NULL) {
        cache_next = mmap(NULL, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (cache_next == MAP_FAILED)
            exit(3);
        cache_end = cache_next + 65536;
    }
    struct compiled code = {name, cache_next, size};
    if (size == 0 || size > (size_t)(cache_end - cache_next))
        exit(3);
    memcpy(code.start, start, size);
    __builtin___clear_cache(code.start, code.start + size);
    cache_next += (size + 63) / 64 * 64;
    return code;
}

// A path in the directory where tools look.
static inline const char *told_in(char *path, size_t room, const char *kind, const char *extension) {
    snprintf(path, room, "/tmp/%s-%d.%s", kind, (int)getpid(), extension);
    unlink(path); // Of an earlier process of this number.
    return path;
}

#endif
