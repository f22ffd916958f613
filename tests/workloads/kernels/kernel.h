// What the kernels share: four threads, locks, a barrier, a random sequence that is the same everywhere, and an answer.
//
// Each kernel takes `train` (the default) or `ref`, prints one line with a checksum of its result, and returns 0 exactly
// when the result is right: 1 is a wrong result, 2 wrong arguments or a failed call. With -DSABOTAGE each skips a single
// update of shared data, which its check must notice.
//
// Locks and barriers are in the program's own text, as the macros of SPLASH-2 expand them: the loads of a lock and of a
// barrier's counter are the program's, and can be hinted. Those of libc's could not.
#ifndef KERNEL_H
#define KERNEL_H

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 4
#define OUT_OF_LINE __attribute__((noinline))
// Of the paper's machine: arrays begin on a line, whichever of the two usual sizes is counted by.
#define LINE 128
#define ON_A_LINE __attribute__((aligned(LINE)))

#ifdef SABOTAGE
#define SABOTAGED 1
#else
#define SABOTAGED 0
#endif

typedef uint32_t lock_word;

// Test, then test-and-set. The load is followed by an exchange of the same word unless somebody else holds it:
// expected to be a candidate wherever a lock goes from thread to thread.
static inline void take(lock_word *lock) {
    while (__atomic_load_n(lock, __ATOMIC_RELAXED) || __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
        sched_yield();
}

static inline void release(lock_word *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

static struct {
    lock_word lock;
    uint32_t arrived;
    uint32_t cycle;
} barrier ON_A_LINE;

// Who comes early sleeps, as with the condition variables of the originals: there are more threads than processors, and
// threads that poll the line of a barrier would be all that a count of transactions shows.
static OUT_OF_LINE void wait_for_all(void) {
    take(&barrier.lock);
    uint32_t cycle = __atomic_load_n(&barrier.cycle, __ATOMIC_RELAXED);
    if (++barrier.arrived == THREADS) {
        barrier.arrived = 0;
        __atomic_store_n(&barrier.cycle, cycle + 1, __ATOMIC_RELEASE);
        release(&barrier.lock);
        syscall(SYS_futex, &barrier.cycle, FUTEX_WAKE_PRIVATE, THREADS, 0);
        return;
    }
    release(&barrier.lock);
    while (__atomic_load_n(&barrier.cycle, __ATOMIC_ACQUIRE) == cycle)
        syscall(SYS_futex, &barrier.cycle, FUTEX_WAIT_PRIVATE, cycle, 0);
}

// Between two jobs. Four threads on fewer processors take turns by it, about as four processors' accesses would; without,
// each does long stretches of the work alone, and little is handed from one to another.
static inline void take_turns(void) { sched_yield(); }

static inline uint64_t next_random(uint64_t *state) {
    // Steele, Lea, Flood 2014: SplitMix64.
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// In [0, 1), a multiple of 2^-24.
static inline double next_fraction(uint64_t *state) { return (double)(next_random(state) >> 40) / (1 << 24); }

// Depends on the order of the values.
static inline uint64_t with(uint64_t sum, uint64_t value) {
    uint64_t state = sum ^ value;
    return next_random(&state);
}

static inline uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Zeroed. The pages are of nobody until somebody touches them.
static inline void *lines(size_t bytes) {
    void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!memory)
        exit(2);
    return memset(memory, 0, bytes);
}

static inline int is_ref(int argc, char **argv) {
    if (argc > 2 || (argc == 2 && strcmp(argv[1], "train") && strcmp(argv[1], "ref"))) {
        fprintf(stderr, "usage: %s [train|ref]\n", argv[0]);
        exit(2);
    }
    return argc == 2 && strcmp(argv[1], "ref") == 0;
}

// Runs `body` as threads 0 to 3; the calling thread is thread 0, who has initialised what they work on.
static inline void run_threads(void *(*body)(void *)) {
    pthread_t others[THREADS];
    for (intptr_t n = 1; n < THREADS; n++)
        if (pthread_create(&others[n], 0, body, (void *)n))
            exit(2);
    body(0);
    for (int n = 1; n < THREADS; n++)
        pthread_join(others[n], 0);
}

static inline int answer(const char *name, int right, uint64_t checksum) {
    printf("%s: %s %016llx\n", name, right ? "right" : "WRONG", (unsigned long long)checksum);
    return !right;
}

#endif
