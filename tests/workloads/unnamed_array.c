// An element of a global array of structs whose type has no name.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "counters"}, "fields": [
//     {"field": "counters[2].a", "offset": 0, "op": "rmw", "function": "count_a", "line": "@a", "thread": "worker-a"},
//     {"field": "counters[2].b", "offset": 8, "op": "rmw", "function": "count_b", "line": "@b", "thread": "worker-b"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

static struct {
    _Alignas(64) unsigned long a;
    OWN_LINE unsigned long b;
} counters[4];

static void *count_a(void *argument) {
    (void)argument;
    uintptr_t n = 0;
    for (; running(); n++)
        __atomic_fetch_add(&counters[2].a, 1, __ATOMIC_RELAXED); // @a
    return (void *)n;
}

static void *count_b(void *argument) {
    (void)argument;
    uintptr_t n = 0;
    for (; running(); n++)
        __atomic_fetch_add(&counters[2].b, 1, __ATOMIC_RELAXED); // @b
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t a = start("worker-a", count_a, NULL);
    pthread_t b = start("worker-b", count_b, NULL);
    run_for_argument(argc, argv);
    int right = finish(a) == counters[2].a;
    right &= finish(b) == counters[2].b;
    return verdict(right, same_line(&counters[2].a, &counters[2].b) == SHARES_LINE);
}
