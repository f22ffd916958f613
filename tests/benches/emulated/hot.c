// Little memory, often: each thread counts in an array of its own. `hot THREADS ROUNDS`.
#include <pthread.h>
#include <stdlib.h>

static long rounds;
static struct {
    _Alignas(64) volatile long n;
    volatile long counts[64];
} own[64];

static void *work(void *which) {
    unsigned long n = (unsigned long)which % 64;
    for (long i = 0; i < rounds * 65536; i++) {
        own[n].n++;
        own[n].counts[i % 64] += own[n].n;
    }
    return NULL;
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
    return 0;
}
