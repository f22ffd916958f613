// A struct on main's stack, handed to two threads that each count in a field of it.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "stack", "type": "struct tally"}, "fields": [
//     {"field": ".left", "offset": 0, "op": "rmw", "function": "count_left", "line": "@left", "thread": "left"},
//     {"field": ".right", "offset": 8, "op": "rmw", "function": "count_right", "line": "@right", "thread": "right"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct tally {
    OWN_LINE unsigned long left;
    OWN_LINE unsigned long right;
    OWN_LINE char end[64];
};

static void *count_left(void *argument) {
    struct tally *tally = argument;
    uintptr_t n = 0;
    for (; running(); n++)
        tally->left++; // @left
    return (void *)n;
}

static void *count_right(void *argument) {
    struct tally *tally = argument;
    uintptr_t n = 0;
    for (; running(); n++)
        tally->right++; // @right
    return (void *)n;
}

int main(int argc, char **argv) {
    struct tally tally __attribute__((aligned(64))) = {0};
    pthread_t left = start("left", count_left, &tally);
    pthread_t right = start("right", count_right, &tally);
    run_for_argument(argc, argv);
    int counts_right = finish(left) == tally.left;
    counts_right &= finish(right) == tally.right;
    return verdict(counts_right, same_line(&tally.left, &tally.right) == SHARES_LINE);
}
