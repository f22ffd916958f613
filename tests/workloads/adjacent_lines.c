// Two counters on lines 2n and 2n+1: apart for the coherence protocol, together for a prefetcher that fetches
// lines in pairs. Found with 128-byte lines; the twin puts them 128 bytes apart.
//
// ANSWER: {"variant": "plain", "tool_arguments": ["--line-size", "128"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "pair", "type": "struct pair"}, "fields": [
//     {"field": "pair.even", "op": "rmw", "function": "count_even", "line": "@even", "thread": "even"},
//     {"field": "pair.odd", "op": "rmw", "function": "count_odd", "line": "@odd", "thread": "odd"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "tool_arguments": ["--line-size", "128"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

#ifdef PADDED
#define APART 128
#else
#define APART 64
#endif

struct pair {
    unsigned long even;
    unsigned long odd __attribute__((aligned(APART)));
};

struct pair pair __attribute__((aligned(128)));

static void *count_even(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++)
        pair.even++; // @even
    return (void *)n;
}

static void *count_odd(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++)
        pair.odd++; // @odd
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t even = start("even", count_even, NULL);
    pthread_t odd = start("odd", count_odd, NULL);
    run_for_argument(argc, argv);
    int right = finish(even) == pair.even;
    right &= finish(odd) == pair.odd;
    int pairs_differ = (uintptr_t)&pair.even / 128 != (uintptr_t)&pair.odd / 128;
    return verdict(right, !same_line(&pair.even, &pair.odd) && pairs_differ == (APART == 128));
}
