// A value read by one function and stored by another, as accessors of a library are: each thread reads its own gauge
// and stores it again. Both gauges are on one line, so each read brings the line for reading and each store asks for
// it again. Without the right thread's reads and the left one's stores, nothing is read and then stored.
//
// ANSWER: {"variant": "plain", "observer": "windows", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "gauges", "type": "struct gauges"}, "fields": [
//     {"field": "gauges.left", "op": "load", "function": "get", "line": "@get", "thread": "left"},
//     {"field": "gauges.left", "op": "store", "function": "set", "line": "@set", "thread": "left"},
//     {"field": "gauges.right", "op": "load", "function": "get", "line": "@get", "thread": "right"},
//     {"field": "gauges.right", "op": "store", "function": "set", "line": "@set", "thread": "right"}]}],
//   "pairs": [{"load": {"function": "get", "line": "@get"}, "store": {"function": "set", "line": "@set"},
//     "op": "store", "hint": true}]}
// ANSWER: {"variant": "unpaired", "observer": "windows", "flags": ["-DUNPAIRED"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "gauges", "type": "struct gauges"}, "fields": [
//     {"field": "gauges.left", "op": "load", "function": "get", "line": "@get", "thread": "left"},
//     {"field": "gauges.right", "op": "store", "function": "set", "line": "@set", "thread": "right"}]}],
//   "pairs": [], "no_pair": ["@get"]}
// ANSWER: {"variant": "padded", "observer": "windows", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

#ifdef UNPAIRED
enum { READS_RIGHT = 0, STORES_LEFT = 0 };
#else
enum { READS_RIGHT = 1, STORES_LEFT = 1 };
#endif

struct gauges {
    OWN_LINE unsigned long left;
    OWN_LINE unsigned long right;
};

struct gauges gauges __attribute__((aligned(64)));

OUT_OF_LINE static unsigned long get(const unsigned long *gauge) {
    return *gauge; // @get
}

OUT_OF_LINE static void set(unsigned long *gauge, unsigned long value) {
    *gauge = value; // @set
    publish();
}

static void *raise_left(void *gauge) {
    uintptr_t n = 0;
    for (; running(); n++) {
        unsigned long value = get(gauge);
        if (STORES_LEFT)
            set(gauge, value + 1);
    }
    return (void *)n;
}

static void *raise_right(void *gauge) {
    uintptr_t n = 0;
    for (; running(); n++)
        set(gauge, (READS_RIGHT ? get(gauge) : n) + 1);
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t left = start("left", raise_left, &gauges.left);
    pthread_t right = start("right", raise_right, &gauges.right);
    run_for_argument(argc, argv);
    unsigned long by_left = finish(left), by_right = finish(right);
    int right_counts = by_left > 0 && gauges.left == (STORES_LEFT ? by_left : 0);
    right_counts &= by_right > 0 && gauges.right == by_right;
    return verdict(right_counts, same_line(&gauges.left, &gauges.right) == SHARES_LINE);
}
