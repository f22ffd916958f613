// A thread-local struct that its thread hands to another: both count in it, each in a field of its own. Volatile, each
// count is a load and a store; without that, it is one instruction.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "tls", "name": "tally", "type": "struct tally"}, "fields": [
//     {"field": "tally.own", "op": "store", "function": "count_own", "line": "@own", "thread": "own"},
//     {"field": "tally.lent", "op": "store", "function": "count_lent", "line": "@lent", "thread": "lent"}]}],
//   "pairs": [
//     {"load": {"function": "count_own", "line": "@own"},
//      "store": {"function": "count_own", "line": "@own"}, "op": "store", "hint": true},
//     {"load": {"function": "count_lent", "line": "@lent"},
//      "store": {"function": "count_lent", "line": "@lent"}, "op": "store", "hint": true}]}
// ANSWER: {"variant": "unpaired", "flags": ["-DUNPAIRED"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "tls", "name": "tally", "type": "struct tally"}, "fields": [
//     {"field": "tally.own", "op": "rmw", "function": "count_own", "line": "@own", "thread": "own"},
//     {"field": "tally.lent", "op": "rmw", "function": "count_lent", "line": "@lent", "thread": "lent"}]}],
//   "pairs": []}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct tally {
    OWN_LINE unsigned long own;
    OWN_LINE unsigned long lent;
    OWN_LINE char end[64];
};

static _Thread_local struct tally tally __attribute__((aligned(64)));
static struct tally *lent; // Stored before the barrier, read after it.
static pthread_barrier_t handed_over;

static void *count_own(void *unused) {
    (void)unused;
    lent = &tally;
    pthread_barrier_wait(&handed_over);
    READ_AND_STORED unsigned long *own = &lent->own;
    uintptr_t n = 0;
    for (; running(); n++)
        (*own)++; // @own
    pthread_barrier_wait(&handed_over); // The memory is this thread's: it must stay until the other is done.
    return (void *)(uintptr_t)(*own == n && same_line(own, &lent->lent) == SHARES_LINE);
}

static void *count_lent(void *unused) {
    (void)unused;
    pthread_barrier_wait(&handed_over);
    READ_AND_STORED unsigned long *borrowed = &lent->lent;
    uintptr_t n = 0;
    for (; running(); n++)
        (*borrowed)++; // @lent
    int right = *borrowed == n;
    pthread_barrier_wait(&handed_over);
    return (void *)(uintptr_t)right;
}

int main(int argc, char **argv) {
    pthread_barrier_init(&handed_over, NULL, 2);
    pthread_t own = start("own", count_own, NULL);
    pthread_t other = start("lent", count_lent, NULL);
    run_for_argument(argc, argv);
    uintptr_t right = finish(own);
    right &= finish(other);
    return verdict((int)right, 1);
}
