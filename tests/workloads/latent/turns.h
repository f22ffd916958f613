// Threads that take turns, so that the order of their accesses is the same in each run.
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// Whose turn it is, far from all else.
static _Alignas(256) struct {
    int turn;
    char own_lines[252];
} turns;

static inline void wait_for_turn(int n) {
    while (__atomic_load_n(&turns.turn, __ATOMIC_ACQUIRE) != n)
        sched_yield();
}

static inline void pass_turn(int next) { __atomic_store_n(&turns.turn, next, __ATOMIC_RELEASE); }

#ifdef FREE
#define TURN(n)
#define PASS(n)
#else
#define TURN(n) wait_for_turn(n)
#define PASS(n) pass_turn(n)
#endif
