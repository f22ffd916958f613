// What a JIT compiler makes of two threads that store a volatile field, each of its own object: the store, a locked
// no-op on the stack, and now and then a read of the page by which the virtual machine stops threads. Small objects of
// one allocation lie on one line. -DPADDED is what @Contended does.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "young", "type": "struct young"}, "least_stalled": 0.5,
//    "says": ["at the full barrier behind the store"], "fields": [
//     {"field": "young.first.value", "op": "store", "function": "set_first", "line": "@first", "thread": "first", "wait": "barrier"},
//     {"field": "young.second.value", "op": "store", "function": "set_second", "line": "@second", "thread": "second", "wait": "barrier"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct object {
    unsigned long mark;
    unsigned type;
    volatile int value;
};

struct young {
    OWN_LINE struct object first;
    OWN_LINE struct object second;
};

struct young young __attribute__((aligned(64)));

static struct {
    volatile int armed;
    char own_page[4092];
} poll_page __attribute__((aligned(4096)));

// The order of C2: the field, then the barrier below the frame.
#define VOLATILE_STORE(field, what)                                                                                    \
    do {                                                                                                               \
        (field) = (what);                                                                                              \
        __asm__ volatile("lock addl $0, -0x40(%%rsp)" ::: "memory", "cc");                                             \
    } while (0)

static uintptr_t hash(uintptr_t n) { return (n ^ n >> 3) & 7; }

static void *set_first(void *unused) {
    (void)unused;
    uintptr_t n = 0, sum = 0;
    while (running()) {
        sum += hash(++n);
        VOLATILE_STORE(young.first.value, (int)n); // @first
        sum += (uintptr_t)poll_page.armed;
    }
    return (void *)(n + (sum == ~0ul));
}

static void *set_second(void *unused) {
    (void)unused;
    uintptr_t n = 0, sum = 0;
    while (running()) {
        sum += hash(++n);
        VOLATILE_STORE(young.second.value, (int)n); // @second
        sum += (uintptr_t)poll_page.armed;
    }
    return (void *)(n + (sum == ~0ul));
}

int main(int argc, char **argv) {
    pthread_t first = start("first", set_first, NULL);
    pthread_t second = start("second", set_second, NULL);
    run_for_argument(argc, argv);
    int right = (int)finish(first) == young.first.value;
    right &= (int)finish(second) == young.second.value;
    return verdict(right, same_line(&young.first, &young.second) == SHARES_LINE);
}
