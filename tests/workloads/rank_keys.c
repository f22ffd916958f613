// A key is read, and the rank beside it stored by another function, as a radix sort does with the digits that it counts.
// Nobody ever stores a key: what makes the pair is the line and not the word. Another thread ranks the neighbouring cell
// by what it knows already, and so the line never stays. Where the ranks of the first go elsewhere, no store follows.
//
// ANSWER: {"variant": "plain", "observer": "windows", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "cells"}, "fields": [
//     {"field": "cells[0].key", "op": "load", "function": "digit_of", "line": "@digit", "thread": "sort"},
//     {"field": "cells[0].rank", "op": "store", "function": "permute", "line": "@rank", "thread": "sort"},
//     {"field": "cells[1].rank", "op": "store", "function": "renumber", "line": "@renumber", "thread": "renumber"}]}],
//   "pairs": [{"load": {"function": "digit_of", "line": "@digit", "field": "cells[0].key"},
//     "store": {"function": "permute", "line": "@rank", "field": "cells[0].rank"}, "op": "store", "hint": true}]}
// ANSWER: {"variant": "unpaired", "observer": "windows", "flags": ["-DUNPAIRED"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "cells"}, "fields": [
//     {"field": "cells[0].key", "op": "load", "function": "digit_of", "line": "@digit", "thread": "sort"},
//     {"field": "cells[1].rank", "op": "store", "function": "renumber", "line": "@renumber", "thread": "renumber"}]}],
//   "pairs": [], "no_pair": ["@digit"]}
// ANSWER: {"variant": "padded", "observer": "windows", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct cell {
    OWN_LINE unsigned long key;
    unsigned long rank;
};

struct cell cells[2] __attribute__((aligned(64))) = {{0x5a3c, 0}, {0x17e9, 0}};

OUT_OF_LINE static unsigned long digit_of(const struct cell *cell) {
    return cell->key >> 4 & 15; // @digit
}

OUT_OF_LINE static void permute(unsigned long *to, unsigned long rank) {
    *to = rank; // @rank
    publish();
}

OUT_OF_LINE static void renumber(struct cell *cell, unsigned long rank) {
    cell->rank = rank; // @renumber
    publish();
}

static unsigned long last_rank;

static void *sort(void *argument) {
    struct cell *cell = argument;
#ifdef UNPAIRED
    unsigned long elsewhere, *to = &elsewhere;
#else
    unsigned long *to = &cell->rank;
#endif
    uintptr_t n = 0;
    for (; running(); n++)
        permute(to, digit_of(cell) + n);
    last_rank = *to;
    return (void *)n;
}

static void *renumber_all(void *argument) {
    uintptr_t n = 0;
    for (; running(); n++)
        renumber(argument, n + 1);
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t sorting = start("sort", sort, &cells[0]);
    pthread_t renumbering = start("renumber", renumber_all, &cells[1]);
    run_for_argument(argc, argv);
    unsigned long sorted = finish(sorting), renumbered = finish(renumbering);
    int right = sorted > 0 && last_rank == 3 + sorted - 1 && cells[0].key == 0x5a3c;
    right &= renumbered > 0 && cells[1].rank == renumbered;
    return verdict(right, same_line(&cells[0].key, &cells[1].rank) == SHARES_LINE);
}
