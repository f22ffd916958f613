// One block after the other at the same address: a short-lived one that a thread alone uses, and the one that two
// threads fight over. `realloc` made the second, so that its name is where it was made, not where it began.
//
// ANSWER: {"variant": "plain", "observer": "allocations", "tool_arguments": ["--heap"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap"}, "fields": [
//     {"offset": 0, "op": "rmw", "function": "count", "line": "@count", "thread": "count-0"},
//     {"offset": 8, "op": "rmw", "function": "count", "line": "@count", "thread": "count-1"}]}]}
// ANSWER: {"variant": "padded", "tool_arguments": ["--heap"], "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

#ifdef PADDED
enum { APART = 16, BYTES = 256 };
#else
enum { APART = 1, BYTES = 56 };
#endif

static void *count(void *argument) {
    unsigned long *mine = argument;
    uintptr_t n = 0;
    for (; running(); n++)
        ++*mine; // @count
    return (void *)n;
}

static __attribute__((noinline)) unsigned long *first_owner(void) {
    unsigned long *made = malloc(40); // @first
    if (made == NULL)
        exit(3);
    return made;
}

static __attribute__((noinline)) unsigned long *grown(unsigned long *small) {
    unsigned long *made = realloc(small, BYTES); // @grown
    if (made == NULL)
        exit(3);
    return made;
}

int main(int argc, char **argv) {
    unsigned long *early = first_owner();
    early[0] = 1;
    uintptr_t where = (uintptr_t)early;
    free(early);
    // The C library gives the same block again to who asks for it next.
    unsigned long *late = first_owner();
    int reused = (uintptr_t)late == where;
    // A block of 40 bytes has no room for more: it moves.
    unsigned long *block = malloc(8);
    late = grown(late);
    int moved = (uintptr_t)late != where;
    unsigned long *mine = late;
    if (APART == 1 && !same_line(&mine[0], &mine[1]))
        mine++;
    mine[0] = mine[APART] = 0;
    pthread_t one = start("count-0", count, &mine[0]);
    pthread_t other = start("count-1", count, &mine[APART]);
    run_for_argument(argc, argv);
    int right = finish(one) == mine[0];
    right &= finish(other) == mine[APART];
    return verdict(right && block != NULL, reused && moved && same_line(&mine[0], &mine[APART]) == SHARES_LINE);
}
