// A table of buckets, each with a lock of its own: on no line enough is seen to know it, on all lines together it is a lock.
//
// ROLES: {"lock": "lock", "sum": "guarded-data"}
// NEVER: replaced-value counter flag overwritten-data

#define _GNU_SOURCE
#include "../stage/stage.h"

enum { BUCKETS = 512 };

struct bucket {
    int lock;
    long sum;
} __attribute__((aligned(64)));

struct bucket buckets[BUCKETS];

static void *add(void *seed) {
    uintptr_t n = 0;
    for (unsigned long at = (uintptr_t)seed; running(); n++) {
        at = at * 6364136223846793005ul + 1442695040888963407ul;
        struct bucket *bucket = &buckets[(at >> 40) % BUCKETS];
        while (__atomic_exchange_n(&bucket->lock, 1, __ATOMIC_ACQUIRE))
            relax();
        *(volatile long *)&bucket->sum += 1;
        __atomic_store_n(&bucket->lock, 0, __ATOMIC_RELEASE);
    }
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t first = start("first", add, (void *)1);
    pthread_t second = start("second", add, (void *)7);
    run_for_argument(argc, argv);
    long all = (long)finish(first);
    all += (long)finish(second);
    long sum = 0;
    for (int n = 0; n < BUCKETS; n++)
        sum += buckets[n].sum;
    return verdict(all == sum, same_line(&buckets[0].lock, &buckets[0].sum));
}
