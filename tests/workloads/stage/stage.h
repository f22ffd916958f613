// What every C and C++ workload shares: a deadline that costs the loops one read, and checks of the layout.
//
// The flag owns two whole lines, so that it takes part in no sharing of the workload's own, not even with
// adjacent-line pairs. It is stored once, when all is over: a read-only line for every practical purpose.

#ifndef STAGE_H
#define STAGE_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static struct {
    int down;
    char own_lines[124];
} curtain __attribute__((aligned(128)));

// Whether the loops go on.
static inline int running(void) { return !__atomic_load_n(&curtain.down, __ATOMIC_RELAXED); }

static inline void sleep_ms(long ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

// What a waiting loop does: not sched_yield, which on a CPU of several threads would give the lock up for a whole turn,
// and not at once again, which would leave the holder little time with the line.
static inline void relax(void) {
#if defined(__x86_64__)
    for (int i = 0; i < 16; i++)
        __builtin_ia32_pause();
#endif
}

// Milliseconds to run: the first argument, or 3000.
static inline long argument_ms(int argc, char **argv) { return argc > 1 ? strtol(argv[1], NULL, 10) : 3000; }

// Sleeps for the time in the first argument, then ends the loops.
static inline void run_for_argument(int argc, char **argv) {
    sleep_ms(argument_ms(argc, argv));
    __atomic_store_n(&curtain.down, 1, __ATOMIC_RELAXED);
}

// Keeps a thread on one of the CPUs that the process may use: the first call's on the first, and so on round. Left
// to the scheduler of a busy machine, threads that share something may stay on one CPU, and then no line moves.
static int turns_taken;

static inline void take_turn(pthread_t thread) {
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        exit(3);
    int place = turns_taken++ % CPU_COUNT(&allowed);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &allowed) || place-- > 0)
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (pthread_setaffinity_np(thread, sizeof one, &one) != 0)
        exit(3);
}

// Starts a thread under a name; a workload that cannot have its threads has no answer.
static inline pthread_t start(const char *name, void *(*role)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, role, argument) != 0)
        exit(3);
    pthread_setname_np(thread, name);
    take_turn(thread);
    return thread;
}

// Waits for a thread and returns the count it ended with.
static inline uintptr_t finish(pthread_t thread) {
    void *count = NULL;
    if (pthread_join(thread, &count) != 0)
        exit(3);
    return (uintptr_t)count;
}

// Whether two objects lie on one line of 64 bytes.
static inline int same_line(const volatile void *a, const volatile void *b) {
    return (uintptr_t)a / 64 == (uintptr_t)b / 64;
}

// A function that the compiler knows nothing of where it is called, as if it were in another library.
#ifdef __clang__
#define OUT_OF_LINE __attribute__((noinline, optnone))
#else
#define OUT_OF_LINE __attribute__((noipa))
#endif

// Waits until the stores so far are done. A store alone is buffered and costs its thread next to nothing: the line
// would move without anybody being seen to wait for it.
static inline void publish(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// Makes an increment a load and a store; in the variant without pairs it is one instruction.
#ifdef UNPAIRED
#define READ_AND_STORED
#else
#define READ_AND_STORED volatile
#endif

// Exit status: 0 when the counts came out right and the layout is what the answer says.
static inline int verdict(int counts_right, int layout_right) { return !counts_right ? 1 : !layout_right ? 2 : 0; }

#ifdef PADDED
#define SHARES_LINE 0
#define OWN_LINE __attribute__((aligned(64)))
#else
#define SHARES_LINE 1
#define OWN_LINE
#endif

#endif
