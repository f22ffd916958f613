// Two counters of one line, as ever, and beside them the laps that each thread counts once in many rounds: on lines of
// their own and seldom touched, so that somebody else can watch them with breakpoints at no cost to speak of.
//
// ANSWER: {"variant": "plain", "observer": "windows", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "track", "type": "struct track"}, "fields": [
//     {"field": "track.inner", "op": "rmw", "function": "run_inner", "line": "@inner", "thread": "inner"},
//     {"field": "track.outer", "op": "rmw", "function": "run_outer", "line": "@outer", "thread": "outer"}]}]}
// ANSWER: {"variant": "padded", "observer": "windows", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

enum { ROUNDS = 1 << 16 };

struct track {
    OWN_LINE unsigned long inner;
    OWN_LINE unsigned long outer;
};

struct track track __attribute__((aligned(64)));

struct laps {
    unsigned long n;
    char own_lines[120];
};

struct laps laps[2] __attribute__((aligned(128)));

static void *run_inner(void *unused) {
    (void)unused;
    for (uintptr_t n = 1; running(); n++) {
        track.inner++; // @inner
        if (n % ROUNDS == 0)
            laps[0].n++;
    }
    return NULL;
}

static void *run_outer(void *unused) {
    (void)unused;
    for (uintptr_t n = 1; running(); n++) {
        track.outer++; // @outer
        if (n % ROUNDS == 0)
            laps[1].n++;
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t inner = start("inner", run_inner, NULL);
    pthread_t outer = start("outer", run_outer, NULL);
    run_for_argument(argc, argv);
    finish(inner);
    finish(outer);
    int right = laps[0].n == track.inner / ROUNDS && laps[1].n == track.outer / ROUNDS && track.inner > 0 && track.outer > 0;
    return verdict(right, same_line(&track.inner, &track.outer) == SHARES_LINE);
}
