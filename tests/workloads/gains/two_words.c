/* Two threads, each with a word of its own. Unless padded, the two words are on one line, so that every access takes
 * it away from the other thread; what they do between two accesses is up to the build, and so is what padding gains.
 *
 *   ACCESS   PLAIN  word++              LOCKED  a locked addition
 *            FENCED a store, then a full barrier
 *            ONE    one thread stores, the other one loads its neighbour, and counts on a line of its own
 *            BURST  fifty times word++, then the work
 *   WORK     turns of a generator that waits for itself, 6 cycles each, after every access (or burst)
 *   PADDED   a line for each
 *
 * Each thread is put on a CPU of its own, where there are two. Says at its end, of each thread: its name, turns, nanoseconds that it ran,
 * and nanoseconds from its first turn to its last. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PLAIN, LOCKED, FENCED, ONE, BURST };

#ifdef PADDED
#define APART _Alignas(64)
#else
#define APART
#endif

struct words {
    _Alignas(64) volatile long left;
    APART volatile long right;
};
static struct words words;
_Alignas(64) static volatile int stop;

struct thread {
    _Alignas(64) const char *name;
    int number;
    volatile long *word;
    int loads;
    volatile long seen;
    long turns, ran_ns, took_ns;
    uint64_t random;
};

static inline uint64_t work(uint64_t random)
{
    for (int turn = 0; turn < WORK; turn++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
    }
    return random;
}

static long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

/* On the first allowed CPU, or the second one. */
static void place(int number)
{
    cpu_set_t allowed, own;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && number-- == 0) {
            CPU_ZERO(&own);
            CPU_SET(cpu, &own);
            sched_setaffinity(0, sizeof own, &own);
            return;
        }
}

static void *run(void *of)
{
    struct thread *thread = of;
    volatile long *word = thread->word;
    uint64_t random = thread->random;
    long turns = 0;
    pthread_setname_np(pthread_self(), thread->name);
    place(thread->number);
    long start = now(CLOCK_MONOTONIC);
    while (!stop) {
        for (int turn = 0; turn < 64; turn++) {
#if ACCESS == 0
            ++*word;
#elif ACCESS == 1
            __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
#elif ACCESS == 2
            *word = turns + turn + 1;
            __atomic_thread_fence(__ATOMIC_SEQ_CST);
#elif ACCESS == 3
            if (thread->loads) {
                random += (uint64_t)*word;
                thread->seen++;
            } else
                *word = turns + turn + 1;
#else
            for (int burst = 0; burst < 50; burst++)
                ++*word;
#endif
            random = work(random);
            /* The next access does not wait for the work, and the work is not left out. */
            __asm__ volatile("" : "+r"(random));
        }
        turns += 64;
    }
    thread->took_ns = now(CLOCK_MONOTONIC) - start;
    thread->ran_ns = now(CLOCK_THREAD_CPUTIME_ID);
    thread->random = random;
    thread->turns = turns;
    return NULL;
}

int main(int argc, char **argv)
{
    struct thread left = {"left", 0, &words.left, 0, 0, 0, 0, 0, 88172645463325252ULL};
    struct thread right = {"right", 1, &words.right, ACCESS == 3, 0, 0, 0, 0, 1234567891234567ULL};
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, run, &left);
    pthread_create(&threads[1], NULL, run, &right);
    usleep(1000 * (argc > 1 ? (unsigned)atoi(argv[1]) : 1000));
    stop = 1;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    for (struct thread *thread = &left; thread; thread = thread == &left ? &right : NULL)
        printf("%s %ld %ld %ld\n", thread->name, thread->turns, thread->ran_ns, thread->took_ns);
    return 0;
}
