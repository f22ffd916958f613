// Much memory and some sharing: each thread sums an array of its own, scatters into another, and now and then adds to
// what all share. `mixed THREADS ROUNDS`.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 1 << 16 };
static long rounds;
static _Alignas(64) long shared[8];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *which) {
    unsigned long n = (unsigned long)which, seed = n + 1;
    long *from = malloc(WORDS * sizeof *from), *to = calloc(WORDS, sizeof *to);
    for (long i = 0; i < WORDS; i++)
        from[i] = i;
    for (long round = 0; round < rounds; round++) {
        long sum = 0;
        for (long i = 0; i < WORDS; i++)
            sum += from[i];
        for (long i = 0; i < WORDS; i++) {
            seed = seed * 6364136223846793005UL + 1442695040888963407UL;
            to[seed >> 48] += from[i];
            if (i % 64 == 0)
                __atomic_fetch_add(&shared[n % 8], 1, __ATOMIC_RELAXED);
        }
        pthread_mutex_lock(&lock);
        shared[0] += sum;
        pthread_mutex_unlock(&lock);
    }
    return to;
}

int main(int argc, char **argv) {
    long threads = argc > 1 ? atol(argv[1]) : 2;
    rounds = argc > 2 ? atol(argv[2]) : 10;
    pthread_t others[64];
    for (long n = 1; n < threads && n < 64; n++)
        pthread_create(&others[n], NULL, work, (void *)n);
    work(NULL);
    for (long n = 1; n < threads && n < 64; n++)
        pthread_join(others[n], NULL);
    printf("%ld\n", shared[0]);
    return 0;
}
