// The twin of a table of locks: each place is written by the thread that it belongs to and read by the other, so that both
// threads write to the array and none of its words has two writers.
//
// ROLES: {"seen": "published-value"}
// NEVER: lock counter overwritten-data replaced-value

#define _GNU_SOURCE
#include "../stage/stage.h"

enum { PLACES = 512 };

struct place {
    long seen;
} __attribute__((aligned(64)));

struct place places[PLACES];

static void *look(void *argument) {
    unsigned long own = (uintptr_t)argument;
    uintptr_t n = 0;
    long last = 0;
    for (unsigned long at = own; running(); n++) {
        at = at * 6364136223846793005ul + 1442695040888963407ul;
        unsigned long place = (at >> 40) % (PLACES / 2) * 2;
        last ^= __atomic_load_n(&places[place + !own].seen, __ATOMIC_RELAXED);
        __atomic_store_n(&places[place + own].seen, last ^ (long)at, __ATOMIC_RELAXED);
    }
    return (void *)(n + (last == 1));
}

int main(int argc, char **argv) {
    pthread_t first = start("first", look, (void *)0);
    pthread_t second = start("second", look, (void *)1);
    run_for_argument(argc, argv);
    int right = finish(first) > 0 && finish(second) > 0;
    return verdict(right, same_line(&places[0].seen, (char *)&places[0].seen + 7));
}
