// Two counters of one line, and on another line the bound of the loops that count, which every round reads anew. The
// CPUs wait for the counters; since a round's accesses retire together, many samples are behind the load of the bound.
// Nobody waits for a bound that nobody changes: its time belongs to the counters. Once a third thread changes it all the
// time, it is waited for as well.
//
// ANSWER: {"variant": "plain", "seconds": 5, "not_listed": ["plan", "curtain"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "tally", "type": "struct tally"}, "least_stalled": 0.5, "fields": [
//     {"field": "tally.odd", "op": "store", "function": "count_odd", "line": "@odd", "thread": "odd"},
//     {"field": "tally.even", "op": "store", "function": "count_even", "line": "@even", "thread": "even"}]}],
//   "pairs": [
//     {"load": {"function": "count_odd", "line": "@odd", "field": "tally.odd"},
//      "store": {"function": "count_odd", "line": "@odd", "field": "tally.odd"}, "op": "store", "hint": true},
//     {"load": {"function": "count_even", "line": "@even", "field": "tally.even"},
//      "store": {"function": "count_even", "line": "@even", "field": "tally.even"}, "op": "store", "hint": true}]}
// ANSWER: {"variant": "unpaired", "flags": ["-DUNPAIRED"], "seconds": 5, "not_listed": ["plan", "curtain"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "tally", "type": "struct tally"}, "least_stalled": 0.5, "fields": [
//     {"field": "tally.odd", "op": "rmw", "function": "count_odd", "line": "@odd", "thread": "odd"},
//     {"field": "tally.even", "op": "rmw", "function": "count_even", "line": "@even", "thread": "even"}]}]}
// ANSWER: {"variant": "stored", "seconds": 5, "flags": ["-DSTORED"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "tally", "type": "struct tally"}, "fields": [
//     {"field": "tally.odd", "op": "store", "function": "count_odd", "line": "@odd", "thread": "odd"},
//     {"field": "tally.even", "op": "store", "function": "count_even", "line": "@even", "thread": "even"}]},
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "plan", "type": "struct plan"}, "fields": [
//     {"field": "plan.rounds", "op": "load", "function": "count_odd", "line": "@odd_bound", "thread": "odd"},
//     {"field": "plan.rounds", "op": "store", "function": "change", "line": "@change", "thread": "change"}]}],
//   "pairs": [
//     {"load": {"function": "count_odd", "line": "@odd", "field": "tally.odd"},
//      "store": {"function": "count_odd", "line": "@odd", "field": "tally.odd"}, "op": "store", "hint": true},
//     {"load": {"function": "count_even", "line": "@even", "field": "tally.even"},
//      "store": {"function": "count_even", "line": "@even", "field": "tally.even"}, "op": "store", "hint": true}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct tally {
    OWN_LINE READ_AND_STORED long odd;
    OWN_LINE READ_AND_STORED long even;
};

struct plan {
    long rounds; // Atomic because an operator may change it.
    char own_line[56];
};

struct tally tally __attribute__((aligned(64)));
struct plan plan __attribute__((aligned(64))) = {64, {0}};

static void *count_odd(void *unused) {
    (void)unused;
    uintptr_t turns = 0;
    for (; running(); turns++)
        for (long round = 0; round < __atomic_load_n(&plan.rounds, __ATOMIC_RELAXED); round++) // @odd_bound
            tally.odd++; // @odd
    return (void *)turns;
}

static void *count_even(void *unused) {
    (void)unused;
    uintptr_t turns = 0;
    for (; running(); turns++)
        for (long round = 0; round < __atomic_load_n(&plan.rounds, __ATOMIC_RELAXED); round++)
            tally.even++; // @even
    return (void *)turns;
}

#ifdef STORED
static void *change(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    while (running())
        __atomic_store_n(&plan.rounds, 64 + (++n & 15), __ATOMIC_RELAXED); // @change
    return (void *)n;
}
#endif

int main(int argc, char **argv) {
    pthread_t odd = start("odd", count_odd, NULL);
    pthread_t even = start("even", count_even, NULL);
#ifdef STORED
    pthread_t changing = start("change", change, NULL);
#endif
    run_for_argument(argc, argv);
    // Whoever counts a turn has made up to 79 rounds, but not the same in each.
    long odds = (long)finish(odd), evens = (long)finish(even);
    int right = tally.odd >= 64 * odds && tally.even >= 64 * evens && odds > 0 && evens > 0;
#ifdef STORED
    right &= finish(changing) > 0;
#endif
    return verdict(right, same_line(&tally.odd, &tally.even) == SHARES_LINE);
}
