// Two globals that nobody put together: the linker did, on one line. They are volatile, so that each count is a
// load and a store instead of one instruction, which it is without that.
//
// ANSWER: {"variant": "plain", "flags": ["-fno-toplevel-reorder"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global"}, "fields": [
//     {"field": "enqueued", "op": "load", "function": "enqueue", "line": "@enqueued", "thread": "enqueue"},
//     {"field": "enqueued", "op": "store", "function": "enqueue", "line": "@enqueued", "thread": "enqueue"},
//     {"field": "dequeued", "op": "load", "function": "dequeue", "line": "@dequeued", "thread": "dequeue"},
//     {"field": "dequeued", "op": "store", "function": "dequeue", "line": "@dequeued", "thread": "dequeue"}]}],
//   "pairs": [
//     {"load": {"function": "enqueue", "line": "@enqueued"},
//      "store": {"function": "enqueue", "line": "@enqueued"}, "op": "store", "hint": true},
//     {"load": {"function": "dequeue", "line": "@dequeued"},
//      "store": {"function": "dequeue", "line": "@dequeued"}, "op": "store", "hint": true}]}
// ANSWER: {"variant": "unpaired", "flags": ["-fno-toplevel-reorder", "-DUNPAIRED"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global"}, "fields": [
//     {"field": "enqueued", "op": "rmw", "function": "enqueue", "line": "@enqueued", "thread": "enqueue"},
//     {"field": "dequeued", "op": "rmw", "function": "dequeue", "line": "@dequeued", "thread": "dequeue"}]}],
//   "pairs": []}
// ANSWER: {"variant": "padded", "flags": ["-fno-toplevel-reorder", "-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

// In order of the source and in a section of their own, so that every linker makes them neighbours.
#define IN_QUEUE __attribute__((section(".data.queue")))

IN_QUEUE READ_AND_STORED unsigned long enqueued __attribute__((aligned(64))) = 0;
IN_QUEUE OWN_LINE READ_AND_STORED unsigned long dequeued = 0;

static void *enqueue(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++)
        enqueued++; // @enqueued
    return (void *)n;
}

static void *dequeue(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++)
        dequeued++; // @dequeued
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t enqueuer = start("enqueue", enqueue, NULL);
    pthread_t dequeuer = start("dequeue", dequeue, NULL);
    run_for_argument(argc, argv);
    int right = finish(enqueuer) == enqueued;
    right &= finish(dequeuer) == dequeued;
    return verdict(right, same_line(&enqueued, &dequeued) == SHARES_LINE);
}
