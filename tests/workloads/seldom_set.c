// A value that is read all the time and stored every sixteenth time: fetching the line for ownership at each read would
// take it from the other thread fifteen times for nothing. A pair, but no hint.
//
// ANSWER: {"variant": "plain", "observer": "windows", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "meters", "type": "struct meters"}, "fields": [
//     {"field": "meters.left", "op": "load", "function": "get", "line": "@get", "thread": "left"},
//     {"field": "meters.left", "op": "store", "function": "set", "line": "@set", "thread": "left"},
//     {"field": "meters.right", "op": "load", "function": "get", "line": "@get", "thread": "right"},
//     {"field": "meters.right", "op": "store", "function": "set", "line": "@set", "thread": "right"}]}],
//   "pairs": []}
// ANSWER: {"variant": "padded", "observer": "windows", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

enum { READS_FOR_A_STORE = 16 };

struct meters {
    OWN_LINE unsigned long left;
    OWN_LINE unsigned long right;
};

struct meters meters __attribute__((aligned(64)));

OUT_OF_LINE static unsigned long get(const unsigned long *meter) {
    return *meter; // @get
}

OUT_OF_LINE static void set(unsigned long *meter, unsigned long value) {
    *meter = value; // @set
    publish();
}

static void *measure(void *meter) {
    uintptr_t stored = 0;
    for (unsigned n = 0; running(); n = (n + 1) % READS_FOR_A_STORE) {
        unsigned long value = get(meter);
        if (n == 0) {
            set(meter, value + 1);
            stored++;
        }
    }
    return (void *)stored;
}

int main(int argc, char **argv) {
    pthread_t left = start("left", measure, &meters.left);
    pthread_t right = start("right", measure, &meters.right);
    run_for_argument(argc, argv);
    unsigned long by_left = finish(left), by_right = finish(right);
    int right_counts = by_left > 0 && meters.left == by_left && meters.right == by_right;
    return verdict(right_counts, same_line(&meters.left, &meters.right) == SHARES_LINE);
}
