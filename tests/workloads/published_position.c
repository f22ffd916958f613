// Two counters of one thread each, and beside them the position that one of the threads publishes for the other. main sets
// all of them before the threads start, which makes none of them its own: only `position` is truly shared.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "mixed-sharing", "object": {"kind": "global", "name": "ring", "type": "struct ring"}, "fields": [
//     {"field": "ring.written", "op": "rmw", "function": "write_on", "line": "@written", "thread": "writer"},
//     {"field": "ring.position", "op": "store", "function": "write_on", "line": "@publish", "thread": "writer"},
//     {"field": "ring.seen", "op": "rmw", "function": "follow", "line": "@seen", "thread": "follower"},
//     {"field": "ring.position", "op": "load", "function": "follow", "line": "@look", "thread": "follower"}]}],
//   "pairs": [
//     {"load": {"function": "follow", "line": "@look", "field": "ring.position"},
//      "store": {"function": "follow", "line": "@seen", "field": "ring.seen"}, "op": "rmw", "hint": true}]}
// ANSWER: {"variant": "unpaired", "flags": ["-DKEPT"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "ring", "type": "struct ring"}, "fields": [
//     {"field": "ring.written", "op": "rmw", "function": "write_on", "line": "@written", "thread": "writer"},
//     {"field": "ring.seen", "op": "rmw", "function": "follow", "line": "@seen", "thread": "follower"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": [
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "ring", "type": "struct ring"}, "fields": [
//     {"field": "ring.position", "op": "store", "function": "write_on", "line": "@publish", "thread": "writer"},
//     {"field": "ring.position", "op": "load", "function": "follow", "line": "@look", "thread": "follower"}]}]}

#define _GNU_SOURCE
#include "stage/stage.h"

struct ring {
    OWN_LINE unsigned long written;
    OWN_LINE unsigned long seen;
    OWN_LINE unsigned long position;
};

struct ring ring __attribute__((aligned(64)));

static void *write_on(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++) {
        ring.written++; // @written
#ifndef KEPT
        __atomic_store_n(&ring.position, n, __ATOMIC_RELAXED); // @publish
#endif
    }
    return (void *)n;
}

static void *follow(void *unused) {
    (void)unused;
    uintptr_t n = 0, newest = 0;
    for (; running(); n++) {
        ring.seen++; // @seen
#ifndef KEPT
        uintptr_t position = __atomic_load_n(&ring.position, __ATOMIC_RELAXED); // @look
        newest = position > newest ? position : newest;
#endif
    }
    return (void *)(n + (newest == UINTPTR_MAX));
}

int main(int argc, char **argv) {
    ring.written = ring.seen = 1;
    ring.position = 0;
    pthread_t writer = start("writer", write_on, NULL);
    pthread_t follower = start("follower", follow, NULL);
    run_for_argument(argc, argv);
    uintptr_t written = finish(writer), seen = finish(follower);
    int right = written > 0 && ring.written == written + 1 && ring.seen == seen + 1;
    return verdict(right, same_line(&ring.written, &ring.seen) == SHARES_LINE);
}
