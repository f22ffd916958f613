// A sequence lock: its one writer makes the version odd, changes the data, and makes it even; readers begin again where it is
// odd or has changed.
//
// ROLES: {"version": "version"}
// NEVER: lock ticket-lock counter

#define _GNU_SOURCE
#include "../stage/stage.h"

struct record {
    unsigned version;
    long low, high;
};

struct record record __attribute__((aligned(64)));

static void *change(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    while (running()) {
        unsigned version = __atomic_load_n(&record.version, __ATOMIC_RELAXED);
        __atomic_store_n(&record.version, version + 1, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        n++;
        __atomic_store_n(&record.low, (long)n, __ATOMIC_RELAXED);
        __atomic_store_n(&record.high, -(long)n, __ATOMIC_RELAXED);
        __atomic_store_n(&record.version, version + 2, __ATOMIC_RELEASE);
        relax();
    }
    return (void *)n;
}

static void *look(void *unused) {
    (void)unused;
    while (running()) {
        unsigned before;
        long low, high;
        do {
            before = __atomic_load_n(&record.version, __ATOMIC_ACQUIRE);
            low = __atomic_load_n(&record.low, __ATOMIC_RELAXED);
            high = __atomic_load_n(&record.high, __ATOMIC_RELAXED);
            __atomic_thread_fence(__ATOMIC_ACQUIRE);
        } while (before % 2 != 0 || before != __atomic_load_n(&record.version, __ATOMIC_RELAXED));
        if (low + high != 0)
            return NULL;
    }
    return (void *)1;
}

int main(int argc, char **argv) {
    pthread_t writer = start("writer", change, NULL);
    pthread_t reader = start("reader", look, NULL);
    run_for_argument(argc, argv);
    unsigned long n = finish(writer);
    int right = finish(reader) == 1 && record.version == (unsigned)(2 * n);
    return verdict(right, same_line(&record.version, &record.high));
}
