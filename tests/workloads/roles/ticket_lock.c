// A ticket lock: who takes a number is next when `serving` comes to it, which the holder advances without an atomic. What it
// guards is on the same line.
//
// ROLES: {"next": "ticket-lock", "serving": "ticket-lock", "sum": "guarded-data"}
// NEVER: counter numbers index

#define _GNU_SOURCE
#include "../stage/stage.h"

struct tickets {
    unsigned next;
    unsigned serving;
    long sum;
};

struct tickets tickets __attribute__((aligned(64)));

static void *add(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++) {
        unsigned mine = __atomic_fetch_add(&tickets.next, 1, __ATOMIC_RELAXED);
        while (__atomic_load_n(&tickets.serving, __ATOMIC_ACQUIRE) != mine)
            relax();
        *(volatile long *)&tickets.sum += 1;
        unsigned turn = __atomic_load_n(&tickets.serving, __ATOMIC_RELAXED);
        __atomic_store_n(&tickets.serving, turn + 1, __ATOMIC_RELEASE);
    }
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t first = start("first", add, NULL);
    pthread_t second = start("second", add, NULL);
    run_for_argument(argc, argv);
    long all = (long)finish(first);
    all += (long)finish(second);
    return verdict(all == tickets.sum, same_line(&tickets.next, &tickets.sum));
}
