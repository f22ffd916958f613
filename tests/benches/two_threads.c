// A CPU-bound program of fixed work, for what watching it costs: two threads that share nothing, or with CONTENDED two
// threads that count on one line and do nothing else.
//
// Usage: two_threads ROUNDS. Says "ready" once both threads stand at their start, begins when a line
// comes on standard input, and prints the nanoseconds it took: by the clock, and of processor time.

#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STEPS = 1000, SLOTS = 2048 };

static pthread_barrier_t begin;
static uint64_t rounds;

#ifdef CONTENDED

struct counters {
    uint64_t own[2];
};

struct counters counters __attribute__((aligned(128)));

static void *work(void *argument) {
    uint64_t *counter = argument;
    pthread_barrier_wait(&begin);
    for (uint64_t round = 0; round < rounds; round++) {
        for (int step = 0; step < STEPS; step++) {
            ++*counter;
            __asm__ volatile("" ::: "memory"); // Each step reaches memory.
        }
    }
    return NULL;
}

static void *argument_of(int thread) { return &counters.own[thread]; }

// Keeps each thread on a CPU of its own: on one CPU they would not fight, and be done many times sooner.
static int keep_apart(pthread_t thread, int place) {
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2)
        return -1;
    int cpu = 0;
    while (!CPU_ISSET(cpu, &allowed) || place-- > 0)
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return pthread_setaffinity_np(thread, sizeof one, &one);
}

#else

// 16 KiB each, on lines and adjacent-line pairs of its own: fits the first cache level of any machine.
struct own {
    uint64_t slots[SLOTS];
} __attribute__((aligned(128)));

static struct own own[2];

static void *work(void *argument) {
    uint64_t *slots = ((struct own *)argument)->slots;
    uint64_t x = 88172645463325252u;
    pthread_barrier_wait(&begin);
    for (uint64_t round = 0; round < rounds; round++) {
        for (int step = 0; step < STEPS; step++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            slots[x % SLOTS] += x;
        }
    }
    return NULL;
}

static void *argument_of(int thread) { return &own[thread]; }

static int keep_apart(pthread_t thread, int place) {
    (void)thread;
    (void)place;
    return 0;
}

#endif

static uint64_t now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv) {
    rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    pthread_barrier_init(&begin, NULL, 3);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, argument_of(i)) != 0 || keep_apart(threads[i], i) != 0)
            return 3;
    puts("ready");
    fflush(stdout);
    // An end of input instead of a line: nobody is there to begin for.
    if (getchar() == EOF)
        return 0;

    uint64_t wall_ns = now_ns(CLOCK_MONOTONIC);
    uint64_t cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    pthread_barrier_wait(&begin);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    wall_ns = now_ns(CLOCK_MONOTONIC) - wall_ns;
    cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    printf("%" PRIu64 " %" PRIu64 "\n", wall_ns, cpu_ns);
    return 0;
}
