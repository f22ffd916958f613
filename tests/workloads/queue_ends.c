// The two ends of a queue on one line, moved by a thread each. Optimised, each move is one instruction that reads and
// writes: it fetches the line for ownership already, and a hint would have nothing to change. Not optimised, it is a
// load, an addition and a store, and the load does with a hint what the one instruction did.
//
// ANSWER: {"variant": "plain", "observer": "windows", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "queue", "type": "struct queue"}, "fields": [
//     {"field": "queue.front", "op": "rmw", "function": "take", "line": "@front", "thread": "take"},
//     {"field": "queue.back", "op": "rmw", "function": "put", "line": "@back", "thread": "put"}]}],
//   "pairs": [
//     {"load": {"function": "take", "line": "@front", "field": "queue.front"}, "same_instruction": true,
//      "store": {"function": "take", "line": "@front", "field": "queue.front"}, "op": "rmw", "hint": false},
//     {"load": {"function": "put", "line": "@back", "field": "queue.back"}, "same_instruction": true,
//      "store": {"function": "put", "line": "@back", "field": "queue.back"}, "op": "rmw", "hint": false}]}
// ANSWER: {"variant": "split", "observer": "windows", "flags": ["-O0"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "queue", "type": "struct queue"}, "fields": [
//     {"field": "queue.front", "op": "load", "function": "take", "line": "@front", "thread": "take"},
//     {"field": "queue.front", "op": "store", "function": "take", "line": "@front", "thread": "take"},
//     {"field": "queue.back", "op": "store", "function": "put", "line": "@back", "thread": "put"}]}],
//   "pairs": [
//     {"load": {"function": "take", "line": "@front", "field": "queue.front"},
//      "store": {"function": "take", "line": "@front", "field": "queue.front"}, "op": "store", "hint": true},
//     {"load": {"function": "put", "line": "@back", "field": "queue.back"},
//      "store": {"function": "put", "line": "@back", "field": "queue.back"}, "op": "store", "hint": true}]}
// ANSWER: {"variant": "padded", "observer": "windows", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct queue {
    OWN_LINE unsigned long front;
    OWN_LINE unsigned long back;
};

struct queue queue __attribute__((aligned(64)));

static void *take(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++)
        queue.front++; // @front
    return (void *)n;
}

// By pointer: not optimised, the load overwrites the register that its address is in.
static void *put(void *argument) {
    struct queue *q = argument;
    uintptr_t n = 0;
    for (; running(); n++)
        q->back++; // @back
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t taking = start("take", take, NULL);
    pthread_t putting = start("put", put, &queue);
    run_for_argument(argc, argv);
    unsigned long taken = finish(taking), put_in = finish(putting);
    int right = taken > 0 && queue.front == taken && queue.back == put_in;
    return verdict(right, same_line(&queue.front, &queue.back) == SHARES_LINE);
}
