// Two locks on one line, each fought for by two threads: each is truly shared, and they are falsely shared with
// each other. Apart, two truly shared lines remain.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "mixed-sharing", "object": {"kind": "global", "name": "queue", "type": "struct queue"}, "fields": [
//     {"field": "queue.head_lock", "op": "rmw", "function": "pop", "line": "@pop"},
//     {"field": "queue.head_lock", "op": "store", "function": "pop", "line": "@popped"},
//     {"field": "queue.tail_lock", "op": "rmw", "function": "push", "line": "@push"},
//     {"field": "queue.tail_lock", "op": "store", "function": "push", "line": "@pushed"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": [
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "queue", "type": "struct queue"}, "fields": [
//     {"field": "queue.head_lock", "op": "rmw", "function": "pop", "line": "@pop"},
//     {"field": "queue.head_lock", "op": "store", "function": "pop", "line": "@popped"}]},
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "queue", "type": "struct queue"}, "fields": [
//     {"field": "queue.tail_lock", "op": "rmw", "function": "push", "line": "@push"},
//     {"field": "queue.tail_lock", "op": "store", "function": "push", "line": "@pushed"}]}]}

#define _GNU_SOURCE
#include "stage/stage.h"

struct queue {
    OWN_LINE int head_lock;
    OWN_LINE int tail_lock;
};

struct queue queue __attribute__((aligned(64)));

static void *pop(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++) {
        while (__atomic_exchange_n(&queue.head_lock, 1, __ATOMIC_ACQUIRE)) // @pop
            relax();
        __atomic_store_n(&queue.head_lock, 0, __ATOMIC_RELEASE); // @popped
    }
    return (void *)n;
}

static void *push(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++) {
        while (__atomic_exchange_n(&queue.tail_lock, 1, __ATOMIC_ACQUIRE)) // @push
            relax();
        __atomic_store_n(&queue.tail_lock, 0, __ATOMIC_RELEASE); // @pushed
    }
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = i < 2 ? start("pop", pop, NULL) : start("push", push, NULL); // Each pair on two CPUs.
    run_for_argument(argc, argv);
    int right = 1;
    for (int i = 0; i < 4; i++)
        right &= finish(threads[i]) > 0;
    right &= queue.head_lock == 0 && queue.tail_lock == 0;
    return verdict(right, same_line(&queue.head_lock, &queue.tail_lock) == SHARES_LINE);
}
