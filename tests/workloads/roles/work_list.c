// A work list: its owner publishes `bottom` with plain stores; owner and thief both advance `top` by compare-and-swap, from
// what it was. Nothing here is a lock.
//
// ROLES: {"top": "index", "bottom": "published-value"}
// NEVER: lock ticket-lock

#define _GNU_SOURCE
#include "../stage/stage.h"

struct work {
    long top;
    long bottom;
};

struct work work __attribute__((aligned(64)));

static void *own(void *unused) {
    (void)unused;
    uintptr_t taken = 0;
    for (long n = 1; running(); n++) {
        __atomic_store_n(&work.bottom, n, __ATOMIC_RELEASE);
        long top = __atomic_load_n(&work.top, __ATOMIC_SEQ_CST);
        if (n % 8 == 0 && top < n)
            taken += __atomic_compare_exchange_n(&work.top, &top, top + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    return (void *)taken;
}

static void *steal(void *unused) {
    (void)unused;
    uintptr_t taken = 0;
    while (running()) {
        long top = __atomic_load_n(&work.top, __ATOMIC_SEQ_CST);
        if (top < __atomic_load_n(&work.bottom, __ATOMIC_ACQUIRE))
            taken += __atomic_compare_exchange_n(&work.top, &top, top + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    return (void *)taken;
}

int main(int argc, char **argv) {
    pthread_t owner = start("owner", own, NULL);
    pthread_t thief = start("thief", steal, NULL);
    run_for_argument(argc, argv);
    long taken = (long)finish(owner) + (long)finish(thief);
    return verdict(taken == work.top, same_line(&work.top, &work.bottom));
}
