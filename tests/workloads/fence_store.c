// Each thread stores its own mark and then has a full barrier, as `atomic_thread_fence` and volatile stores of Java have
// it. The CPU waits for the shared line at the barrier, whose own operand is private memory, or which has none.
// Where the barrier itself is the store, it waits for its own line; and barriers behind private stores share nothing.
//
// ANSWER: {"variant": "plain", "not_listed": ["curtain"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "mark", "type": "struct mark"}, "least_stalled": 0.5,
//    "says": ["at the full barrier behind the store"], "fields": [
//     {"field": "mark.left", "op": "store", "function": "mark_left", "line": "@left", "thread": "left", "wait": "barrier"},
//     {"field": "mark.right", "op": "store", "function": "mark_right", "line": "@right", "thread": "right", "wait": "barrier"}]}]}
// ANSWER: {"variant": "mfence", "flags": ["-DMFENCE"], "not_listed": ["curtain"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "mark", "type": "struct mark"}, "least_stalled": 0.5,
//    "says": ["at the full barrier behind the store"], "fields": [
//     {"field": "mark.left", "op": "store", "function": "mark_left", "line": "@left", "thread": "left", "wait": "barrier"},
//     {"field": "mark.right", "op": "store", "function": "mark_right", "line": "@right", "thread": "right", "wait": "barrier"}]}]}
// ANSWER: {"variant": "xchg", "flags": ["-DXCHG"], "not_listed": ["curtain"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "mark", "type": "struct mark"}, "least_stalled": 0.5,
//    "says": ["at the full barrier behind the store"], "fields": [
//     {"field": "mark.left", "op": "store", "function": "mark_left", "line": "@left", "thread": "left", "wait": "barrier"},
//     {"field": "mark.right", "op": "store", "function": "mark_right", "line": "@right", "thread": "right", "wait": "barrier"}]}]}
// ANSWER: {"variant": "operand", "flags": ["-DOPERAND"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "mark", "type": "struct mark"}, "least_stalled": 0.5,
//    "fields": [
//     {"field": "mark.left", "op": "rmw", "function": "mark_left", "line": "@left", "thread": "left", "wait": "instruction"},
//     {"field": "mark.right", "op": "rmw", "function": "mark_right", "line": "@right", "thread": "right", "wait": "instruction"}]}]}
// ANSWER: {"variant": "private", "flags": ["-DPRIVATE"], "findings": []}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct mark {
    OWN_LINE volatile long left;
    OWN_LINE volatile long right;
};

struct mark mark __attribute__((aligned(64)));

#if defined MFENCE
#define BARRIER() __asm__ volatile("mfence" ::: "memory")
#elif defined XCHG
#define BARRIER()                                                                                                      \
    do {                                                                                                               \
        long own = 0, old = 0;                                                                                         \
        __asm__ volatile("xchg %0, %1" : "+r"(old), "+m"(own)::"memory");                                              \
    } while (0)
#elif defined OPERAND
#define BARRIER() ((void)0)
#else
#define BARRIER() __asm__ volatile("lock addl $0, -64(%%rsp)" ::: "memory", "cc")
#endif

#if defined OPERAND
#define STORE(to, value) (void)__atomic_exchange_n(&(to), value, __ATOMIC_SEQ_CST)
#elif defined PRIVATE
#define STORE(to, value) (*(volatile long *)&scratch = (value))
#else
#define STORE(to, value) ((to) = (value))
#endif

static void *mark_left(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    long scratch = 0;
    while (running()) {
        STORE(mark.left, (long)++n); // @left
        BARRIER();
    }
    mark.left = (long)n;
    return (void *)(n + (scratch < 0));
}

static void *mark_right(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    long scratch = 0;
    while (running()) {
        STORE(mark.right, (long)++n); // @right
        BARRIER();
    }
    mark.right = (long)n;
    return (void *)(n + (scratch < 0));
}

int main(int argc, char **argv) {
    pthread_t left = start("left", mark_left, NULL);
    pthread_t right = start("right", mark_right, NULL);
    run_for_argument(argc, argv);
    long lefts = (long)finish(left), rights = (long)finish(right);
    int right_counts = lefts > 0 && rights > 0 && mark.left == lefts && mark.right == rights;
    return verdict(right_counts, same_line(&mark.left, &mark.right) == SHARES_LINE);
}
