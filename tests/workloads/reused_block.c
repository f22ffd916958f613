// One block after the other at the same address: a short-lived one that a thread alone uses, and the one that two
// threads fight over. `realloc` made the second, so that its name is where it was made, not where it began.
//
// ANSWER: {"variant": "plain", "tool_arguments": ["--heap"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap"}, "fields": [
//     {"offset": 0, "op": "rmw", "function": "count", "line": "@count", "thread": "count-0"},
//     {"offset": 8, "op": "rmw", "function": "count", "line": "@count", "thread": "count-1"}]}]}

#define _GNU_SOURCE
#include "stage/stage.h"

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
    unsigned long *made = realloc(small, 56); // @grown
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
    // A block of 40 bytes has no room for 56: it moves.
    unsigned long *block = malloc(8);
    late = grown(late);
    int moved = (uintptr_t)late != where;
    unsigned long *mine = late;
    if (!same_line(&mine[0], &mine[1]))
        mine++;
    mine[0] = mine[1] = 0;
    pthread_t one = start("count-0", count, &mine[0]);
    pthread_t other = start("count-1", count, &mine[1]);
    run_for_argument(argc, argv);
    int right = finish(one) == mine[0];
    right &= finish(other) == mine[1];
    return verdict(right && block != NULL, reused && moved && same_line(&mine[0], &mine[1]));
}
