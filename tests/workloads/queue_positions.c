// The positions of a one-to-one queue, whose slots nobody stores to here: the producer stores `tail` and reads `head`, the
// consumer the other way round, and both read where the slots are. Each position is truly shared, whatever its line;
// together on one line each drags the other, and what is only read, along.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "mixed-sharing", "object": {"kind": "heap", "type": "struct queue"}, "fields": [
//     {"field": ".tail", "op": "store", "function": "produce", "line": "@produced", "thread": "produce"},
//     {"field": ".head", "op": "load", "function": "produce", "line": "@full", "thread": "produce"},
//     {"field": ".head", "op": "store", "function": "consume", "line": "@consumed", "thread": "consume"},
//     {"field": ".tail", "op": "load", "function": "consume", "line": "@empty", "thread": "consume"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": [
//   {"kind": "true-sharing", "object": {"kind": "heap", "type": "struct queue"}, "fields": [
//     {"field": ".head", "op": "load", "function": "produce", "line": "@full", "thread": "produce"},
//     {"field": ".head", "op": "store", "function": "consume", "line": "@consumed", "thread": "consume"}]},
//   {"kind": "true-sharing", "object": {"kind": "heap", "type": "struct queue"}, "fields": [
//     {"field": ".tail", "op": "store", "function": "produce", "line": "@produced", "thread": "produce"},
//     {"field": ".tail", "op": "load", "function": "consume", "line": "@empty", "thread": "consume"}]}]}

#define _GNU_SOURCE
#include "stage/stage.h"

enum { SLOTS = 16 };

struct queue {
    OWN_LINE long *slot;
    unsigned long mask;
    OWN_LINE unsigned long head;
    OWN_LINE unsigned long tail;
};

static struct queue *queue;

static void *produce(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    while (running()) {
        unsigned long tail = __atomic_load_n(&queue->tail, __ATOMIC_RELAXED);
        if (tail - __atomic_load_n(&queue->head, __ATOMIC_ACQUIRE) > queue->mask) // @full
            continue;
        n += queue->slot[tail & queue->mask] == 1;
        __atomic_store_n(&queue->tail, tail + 1, __ATOMIC_RELEASE); // @produced
    }
    return (void *)n;
}

static void *consume(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    while (running()) {
        unsigned long head = __atomic_load_n(&queue->head, __ATOMIC_RELAXED);
        if (head == __atomic_load_n(&queue->tail, __ATOMIC_ACQUIRE)) // @empty
            continue;
        n += queue->slot[head & queue->mask] == 1;
        __atomic_store_n(&queue->head, head + 1, __ATOMIC_RELEASE); // @consumed
    }
    return (void *)n;
}

int main(int argc, char **argv) {
    queue = aligned_alloc(64, (sizeof *queue + 63) / 64 * 64);
    queue->slot = aligned_alloc(64, SLOTS * sizeof *queue->slot);
    for (int i = 0; i < SLOTS; i++)
        queue->slot[i] = 1;
    queue->mask = SLOTS - 1;
    queue->head = queue->tail = 0;
    pthread_t producer = start("produce", produce, NULL);
    pthread_t consumer = start("consume", consume, NULL);
    run_for_argument(argc, argv);
    unsigned long produced = finish(producer), consumed = finish(consumer);
    int right = consumed > 0 && consumed == queue->head && produced == queue->tail && produced - consumed <= SLOTS;
    return verdict(right, same_line(&queue->head, &queue->tail) == SHARES_LINE);
}
