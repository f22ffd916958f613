// A spin lock and what it guards, and beside them a counter that is taken without it.
//
// ROLES: {"lock": "lock", "sum": "guarded-data", "tries": "counter"}
// NEVER: index list-head

#define _GNU_SOURCE
#include "../stage/stage.h"

struct account {
    int lock;
    long sum;
    long tries;
};

struct account account __attribute__((aligned(64)));

static void *add(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++) {
        __atomic_fetch_add(&account.tries, 1, __ATOMIC_RELAXED);
        while (__atomic_exchange_n(&account.lock, 1, __ATOMIC_ACQUIRE))
            relax();
        *(volatile long *)&account.sum += 1;
        __atomic_store_n(&account.lock, 0, __ATOMIC_RELEASE);
    }
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t first = start("first", add, NULL);
    pthread_t second = start("second", add, NULL);
    run_for_argument(argc, argv);
    long all = (long)finish(first);
    all += (long)finish(second);
    return verdict(all == account.sum && all == account.tries, same_line(&account.lock, &account.tries));
}
