// 500 threads, half of which count hits and half misses: each counter is truly shared, and the two are falsely
// shared with each other. Apart, two truly shared lines remain.
//
// ANSWER: {"variant": "plain", "seconds": 4, "findings": [
//   {"kind": "mixed-sharing", "object": {"kind": "global", "name": "cache", "type": "struct cache"}, "fields": [
//     {"field": "cache.hits", "op": "rmw", "function": "count_hits", "line": "@hit", "thread": "hits"},
//     {"field": "cache.misses", "op": "rmw", "function": "count_misses", "line": "@miss", "thread": "misses"}]}]}
// ANSWER: {"variant": "padded", "seconds": 4, "flags": ["-DPADDED"], "findings": [
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "cache", "type": "struct cache"}, "fields": [
//     {"field": "cache.hits", "op": "rmw", "function": "count_hits", "line": "@hit", "thread": "hits"}]},
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "cache", "type": "struct cache"}, "fields": [
//     {"field": "cache.misses", "op": "rmw", "function": "count_misses", "line": "@miss", "thread": "misses"}]}]}

#define _GNU_SOURCE
#include "stage/stage.h"

#define THREADS 500

struct cache {
    OWN_LINE unsigned long hits;
    OWN_LINE unsigned long misses;
};

struct cache cache __attribute__((aligned(64)));

// Nobody counts before all are there: creating 500 threads beside busy ones takes seconds.
static pthread_barrier_t gate;

static void *count_hits(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    pthread_barrier_wait(&gate);
    for (; running(); n++)
        __atomic_fetch_add(&cache.hits, 1, __ATOMIC_RELAXED); // @hit
    return (void *)n;
}

static void *count_misses(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    pthread_barrier_wait(&gate);
    for (; running(); n++)
        __atomic_fetch_add(&cache.misses, 1, __ATOMIC_RELAXED); // @miss
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&gate, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        threads[i] = i / 2 % 2 ? start("misses", count_misses, NULL) : start("hits", count_hits, NULL);
    pthread_barrier_wait(&gate);
    run_for_argument(argc, argv);
    unsigned long counted[2] = {0, 0};
    for (int i = 0; i < THREADS; i++)
        counted[i / 2 % 2] += finish(threads[i]);
    int right = counted[0] == cache.hits && counted[1] == cache.misses;
    return verdict(right, same_line(&cache.hits, &cache.misses) == SHARES_LINE);
}
