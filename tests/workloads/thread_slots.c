// A global array with an 8-byte slot for each thread: what looks private shares one line.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "events"}, "fields": [
//     {"field": "events[0]", "op": "rmw", "function": "count_events", "line": "@event", "thread": "slot-0"},
//     {"field": "events[1]", "op": "rmw", "function": "count_events", "line": "@event", "thread": "slot-1"},
//     {"field": "events[2]", "op": "rmw", "function": "count_events", "line": "@event", "thread": "slot-2"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

#define THREADS 3

#ifdef PADDED
typedef struct {
    OWN_LINE unsigned long n;
} slot;
#define COUNT(slot) (slot).n
#else
typedef unsigned long slot;
#define COUNT(slot) (slot)
#endif

slot events[THREADS] __attribute__((aligned(64)));

static void *count_events(void *argument) {
    uintptr_t index = (uintptr_t)argument, n = 0;
    for (; running(); n++)
        COUNT(events[index])++; // @event
    return (void *)n;
}

int main(int argc, char **argv) {
    static const char *const names[THREADS] = {"slot-0", "slot-1", "slot-2"};
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        threads[i] = start(names[i], count_events, (void *)i);
    run_for_argument(argc, argv);
    int right = 1;
    for (uintptr_t i = 0; i < THREADS; i++)
        right &= finish(threads[i]) == COUNT(events[i]);
    return verdict(right, same_line(&events[0], &events[THREADS - 1]) == SHARES_LINE);
}
