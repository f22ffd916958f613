// A ring of 4096 slots, each on a line of its own, into which one thread puts numbers and out of which another reads them as
// they come: all lines move between the CPUs, and none takes a thousandth of the traffic. In the other variant each thread
// goes round half of the ring by itself.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "ring"}, "fields": [
//     {"op": "store", "function": "produce", "line": "@put", "thread": "produce"},
//     {"op": "load", "function": "consume", "line": "@come", "thread": "consume"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DSPLIT"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

enum { SLOTS = 4096 };

static struct {
    _Alignas(64) unsigned long value;
} ring[SLOTS];

// Where a thread has got to: its own half of the ring where it is split.
static inline unsigned long *slot(unsigned long n, unsigned long half) {
#ifdef SPLIT
    return &ring[n % (SLOTS / 2) + half * (SLOTS / 2)].value;
#else
    (void)half;
    return &ring[n % SLOTS].value;
#endif
}

static void *produce(void *unused) {
    (void)unused;
    unsigned long n = 0;
    for (; running(); n++) {
        __atomic_store_n(slot(n, 0), n + 1, __ATOMIC_RELEASE); // @put
        publish();
    }
    return (void *)n;
}

static void *consume(void *unused) {
    (void)unused;
    unsigned long n = 0, laps = 0;
    while (running()) {
        unsigned long seen = __atomic_load_n(slot(n, 1), __ATOMIC_ACQUIRE); // @come
#ifndef SPLIT
        if (seen <= n)
            continue; // Not yet.
#endif
        laps += seen > n + 1;
        n++;
    }
    return (void *)(n + (laps == 0));
}

int main(int argc, char **argv) {
    pthread_t producer = start("produce", produce, NULL);
    pthread_t consumer = start("consume", consume, NULL);
    run_for_argument(argc, argv);
    return verdict(finish(producer) > 0 && finish(consumer) > 0, 1);
}
