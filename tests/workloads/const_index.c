// Two threads, two members of one element of a heap array that a global pointer leads to. The compiler folds the
// index into the displacement, which is then larger than the type that the pointer points to.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap", "called": "recs[3]", "type": "struct rec"}, "fields": [
//     {"field": ".in", "offset": 0, "op": "rmw", "function": "fill", "line": "@in", "thread": "fill"},
//     {"field": ".out", "offset": 8, "op": "rmw", "function": "drain", "line": "@out", "thread": "drain"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct rec {
    OWN_LINE unsigned long in;
    OWN_LINE unsigned long out;
};

// Known to the linker, so that the compiler does not put the array in the pointer's place.
struct rec *recs;

static void *fill(void *argument) {
    (void)argument;
    uintptr_t n = 0;
    for (; running(); n++)
        __atomic_fetch_add(&recs[3].in, 1, __ATOMIC_RELAXED); // @in
    return (void *)n;
}

static void *drain(void *argument) {
    (void)argument;
    uintptr_t n = 0;
    for (; running(); n++)
        __atomic_fetch_add(&recs[3].out, 1, __ATOMIC_RELAXED); // @out
    return (void *)n;
}

int main(int argc, char **argv) {
    recs = aligned_alloc(64, 8 * sizeof(struct rec));
    if (recs == NULL)
        return 3;
    recs[3] = (struct rec){0, 0};
    pthread_t filler = start("fill", fill, NULL);
    pthread_t drainer = start("drain", drain, NULL);
    run_for_argument(argc, argv);
    int right = finish(filler) == recs[3].in;
    right &= finish(drainer) == recs[3].out;
    return verdict(right, same_line(&recs[3].in, &recs[3].out) == SHARES_LINE);
}
