// Two counters of one global struct, each counted by a thread of its own.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "counters", "type": "struct counters"}, "fields": [
//     {"field": "counters.hits", "op": "rmw", "function": "count_hits", "line": "@hits", "thread": "hits"},
//     {"field": "counters.misses", "op": "rmw", "function": "count_misses", "line": "@misses", "thread": "misses"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct counters {
    OWN_LINE unsigned long hits;
    OWN_LINE unsigned long misses;
};

struct counters counters __attribute__((aligned(64)));

static void *count_hits(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++)
        counters.hits++; // @hits
    return (void *)n;
}

static void *count_misses(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++)
        counters.misses++; // @misses
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t hits = start("hits", count_hits, NULL);
    pthread_t misses = start("misses", count_misses, NULL);
    run_for_argument(argc, argv);
    int right = finish(hits) == counters.hits;
    right &= finish(misses) == counters.misses;
    return verdict(right, same_line(&counters.hits, &counters.misses) == SHARES_LINE);
}
