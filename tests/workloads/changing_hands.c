// Two counters, of which two threads have one each and change places five times a second, as tasks do that a runtime moves
// from thread to thread. Over the run each thread stores to both, and at no time do two threads use the same: false
// sharing. In the twin each thread counts in both at all times.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "stats", "type": "struct stats"}, "fields": [
//     {"field": "stats.hits", "op": "rmw", "function": "count", "line": "@hit"},
//     {"field": "stats.misses", "op": "rmw", "function": "count", "line": "@miss"}]}]}
// ANSWER: {"variant": "common", "flags": ["-DCOMMON"], "findings": [
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "stats", "type": "struct stats"}, "fields": [
//     {"field": "stats.hits", "op": "rmw", "function": "count", "line": "@hit"},
//     {"field": "stats.misses", "op": "rmw", "function": "count", "line": "@miss"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

enum { TURN_MS = 200, STEPS = 16 };

#ifdef COMMON
#define BOTH 1
#else
#define BOTH 0
#endif

struct stats {
    OWN_LINE unsigned long hits;
    OWN_LINE unsigned long misses;
};

struct stats stats __attribute__((aligned(64)));

static long turn(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec * 1000 + now.tv_nsec / 1000000) / TURN_MS;
}

static OUT_OF_LINE void *count(void *second) {
    uintptr_t n = 0;
    while (running()) {
        int hits = (turn() + (second != NULL)) % 2 == 0;
        for (int i = 0; i < STEPS; i++, n++) {
            if (BOTH || hits)
                __atomic_fetch_add(&stats.hits, 1, __ATOMIC_RELAXED); // @hit
            if (BOTH || !hits)
                __atomic_fetch_add(&stats.misses, 1, __ATOMIC_RELAXED); // @miss
        }
    }
    return (void *)n;
}

int main(int argc, char **argv) {
    static int second;
    pthread_t left = start("left", count, NULL), right = start("right", count, &second);
    run_for_argument(argc, argv);
    uintptr_t counted = finish(left) + finish(right);
    return verdict(counted * (1 + BOTH) == stats.hits + stats.misses, same_line(&stats.hits, &stats.misses) == SHARES_LINE);
}
