// Two counters in a program without symbols or debug information (the unwind table stays, as `strip` leaves it):
// module and offset must still be right. The functions named here are looked up in a copy that was not stripped.
//
// ANSWER: {"variant": "plain", "strip": true, "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global"}, "fields": [
//     {"offset": 0, "op": "rmw", "function": "count_parsed", "line": "@parsed", "thread": "parsed"},
//     {"offset": 8, "op": "rmw", "function": "count_failed", "line": "@failed", "thread": "failed"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "strip": true, "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct parser {
    OWN_LINE unsigned long parsed;
    OWN_LINE unsigned long failed;
};

static struct parser parser __attribute__((aligned(64)));

static void *count_parsed(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++)
        parser.parsed++; // @parsed
    return (void *)n;
}

static void *count_failed(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++)
        parser.failed++; // @failed
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t parsed = start("parsed", count_parsed, NULL);
    pthread_t failed = start("failed", count_failed, NULL);
    run_for_argument(argc, argv);
    int right = finish(parsed) == parser.parsed;
    right &= finish(failed) == parser.failed;
    return verdict(right, same_line(&parser.parsed, &parser.failed) == SHARES_LINE);
}
