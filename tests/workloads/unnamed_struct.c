// A heap object whose type has no name, nor have the types of its members.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap", "called": "*queue", "type": "struct (anonymous)"}, "fields": [
//     {"field": ".put", "offset": 0, "op": "rmw", "function": "produce", "line": "@put", "thread": "producer"},
//     {"field": ".taken.all", "offset": 8, "op": "rmw", "function": "consume", "line": "@all", "thread": "consumer"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct {
    struct {
        OWN_LINE unsigned long put;
    };
    struct {
        OWN_LINE unsigned long all;
    } taken;
} *queue;

static void *produce(void *argument) {
    (void)argument;
    uintptr_t n = 0;
    for (; running(); n++)
        __atomic_fetch_add(&queue->put, 1, __ATOMIC_RELAXED); // @put
    return (void *)n;
}

static void *consume(void *argument) {
    (void)argument;
    uintptr_t n = 0;
    for (; running(); n++)
        __atomic_fetch_add(&queue->taken.all, 1, __ATOMIC_RELAXED); // @all
    return (void *)n;
}

int main(int argc, char **argv) {
    queue = aligned_alloc(128, 128);
    if (queue == NULL)
        return 3;
    queue->put = queue->taken.all = 0;
    pthread_t producer = start("producer", produce, NULL);
    pthread_t consumer = start("consumer", consume, NULL);
    run_for_argument(argc, argv);
    int right = finish(producer) == queue->put;
    right &= finish(consumer) == queue->taken.all;
    return verdict(right, same_line(&queue->put, &queue->taken.all) == SHARES_LINE);
}
