// Two threads pass a token to and fro, and each spins until the other one has passed it: with and without a pause. The
// busy ones compute while they wait, which is no spinning. Apart, each passes a token of its own to itself.
//
// ANSWER: {"variant": "plain", "not_listed": ["curtain"], "findings": [
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "token", "type": "struct token"}, "least_stalled": 0.5,
//    "says": ["Threads spin for it ", " until ", " stores at hand_over.c:"], "fields": [
//     {"field": "token.given", "op": "load", "function": "give", "line": "@given", "thread": "giver", "wait": "spin"},
//     {"field": "token.given", "op": "store", "function": "give", "line": "@give", "thread": "giver"},
//     {"field": "token.given", "op": "load", "function": "take", "line": "@taken", "thread": "taker", "wait": "spin"},
//     {"field": "token.given", "op": "store", "function": "take", "line": "@take", "thread": "taker"}]}]}
// ANSWER: {"variant": "unpaused", "flags": ["-DUNPAUSED"], "not_listed": ["curtain"], "findings": [
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "token", "type": "struct token"}, "least_stalled": 0.5,
//    "says": ["Threads spin for it ", " until ", " stores at hand_over.c:"], "fields": [
//     {"field": "token.given", "op": "load", "function": "give", "line": "@given", "thread": "giver", "wait": "spin"},
//     {"field": "token.given", "op": "store", "function": "give", "line": "@give", "thread": "giver"},
//     {"field": "token.given", "op": "load", "function": "take", "line": "@taken", "thread": "taker", "wait": "spin"},
//     {"field": "token.given", "op": "store", "function": "take", "line": "@take", "thread": "taker"}]}]}
// ANSWER: {"variant": "busy", "flags": ["-DBUSY"], "findings": [
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "token", "type": "struct token"}, "fields": [
//     {"field": "token.given", "op": "load", "function": "give", "line": "@given", "thread": "giver", "wait": "instruction"},
//     {"field": "token.given", "op": "load", "function": "take", "line": "@taken", "thread": "taker", "wait": "instruction"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

enum { GIVER, TAKER };

struct token {
    OWN_LINE volatile long given;
    OWN_LINE volatile long own;
};

struct token token __attribute__((aligned(64)));

#if defined BUSY
#define WHILE_WAITING() (hash = hash * 6364136223846793005 + 1442695040888963407)
#elif defined UNPAUSED
#define WHILE_WAITING() ((void)0)
#else
#define WHILE_WAITING() __builtin_ia32_pause()
#endif

#ifdef PADDED
#define TAKERS token.own
#define TO_TAKER GIVER
#define TO_GIVER TAKER
#else
#define TAKERS token.given
#define TO_TAKER TAKER
#define TO_GIVER GIVER
#endif

static void *give(void *unused) {
    (void)unused;
    uintptr_t n = 0, hash = 1;
    for (; running(); n++) {
        while (token.given != GIVER && running()) // @given
            WHILE_WAITING();
        token.given = TO_TAKER; // @give
    }
    return (void *)(n + (hash == 0));
}

static void *take(void *unused) {
    (void)unused;
    uintptr_t n = 0, hash = 1;
    for (; running(); n++) {
        while (TAKERS != TAKER && running()) // @taken
            WHILE_WAITING();
        TAKERS = TO_GIVER; // @take
    }
    return (void *)(n + (hash == 0));
}

int main(int argc, char **argv) {
    TAKERS = TO_GIVER;
    pthread_t giver = start("giver", give, NULL);
    pthread_t taker = start("taker", take, NULL);
    run_for_argument(argc, argv);
    long given = (long)finish(giver), taken = (long)finish(taker);
    int right = given > 0 && taken > 0;
    right &= !SHARES_LINE || labs(given - taken) <= 2;
    return verdict(right, same_line(&token.given, &TAKERS) == SHARES_LINE);
}
