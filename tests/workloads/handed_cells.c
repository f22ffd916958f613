// Cells on the heap that only a library's code accesses, which has no debug information: the program hands it cells of an array
// that a global pointer leads to. Built twice: with -DLIBRARY as the library, without as the program, which opens it beside
// itself. Two threads use cells beside each other, or cells on lines of their own.
//
// ANSWER: {"variant": "plain", "library_flags": ["-DLIBRARY"], "no_lines": true, "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap", "type": "struct cell"}, "fields": [
//     {"field": "cells[2].taken", "op": "rmw", "function": "take", "line": "@take", "thread": "worker-2"},
//     {"field": "cells[3].taken", "op": "rmw", "function": "take_other", "line": "@other", "thread": "worker-3"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DAPART=4"], "library_flags": ["-DLIBRARY"], "no_lines": true, "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct cell {
    unsigned long state;
    unsigned long taken;
};

void take(struct cell *cell, const int *stop);
void take_other(struct cell *cell, const int *stop);

#ifdef LIBRARY

void take(struct cell *cell, const int *stop) {
    while (!__atomic_load_n(stop, __ATOMIC_RELAXED))
        cell->taken++; // @take
}

// Adds another number, or the compiler makes one function of both.
void take_other(struct cell *cell, const int *stop) {
    while (!__atomic_load_n(stop, __ATOMIC_RELAXED))
        cell->taken += 3; // @other
}

#else

#include "stage/library.h"
#include <string.h>

#ifndef APART
#define APART 1
#endif

enum { CELLS = 64 };

// Known to the linker, so that the compiler does not put the array in the pointer's place.
struct cell *cells;
static void (*take_of)(struct cell *, const int *);
static void (*take_other_of)(struct cell *, const int *);

static void *second(void *unused) {
    take_of(&cells[2], &curtain.down);
    return unused;
}

static void *third(void *unused) {
    take_other_of(&cells[2 + APART], &curtain.down);
    return unused;
}

static int find_library(void) {
    void *library = open_library();
    if (library == NULL)
        return 0;
    take_of = (void (*)(struct cell *, const int *))dlsym(library, "take");
    take_other_of = (void (*)(struct cell *, const int *))dlsym(library, "take_other");
    return take_of != NULL && take_other_of != NULL;
}

int main(int argc, char **argv) {
    if (!find_library())
        return 3;
    cells = aligned_alloc(64, CELLS * sizeof *cells);
    memset(cells, 0, CELLS * sizeof *cells);
    pthread_t first = start("worker-2", second, NULL);
    pthread_t other = start("worker-3", third, NULL);
    run_for_argument(argc, argv);
    finish(first);
    finish(other);
    int right = cells[2].taken > 0 && cells[2 + APART].taken > 0;
    return verdict(right, same_line(&cells[2], &cells[2 + APART]) == (APART == 1));
}

#endif
