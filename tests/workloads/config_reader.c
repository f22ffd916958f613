// Configuration that is only read, on one line with a counter that is written all the time. The readers pay.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "service", "type": "struct service"}, "fields": [
//     {"field": "service.limit", "op": "load", "function": "admit", "line": "@limit", "thread": "admit"},
//     {"field": "service.requests", "op": "rmw", "function": "count_requests", "line": "@request", "thread": "count"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct service {
    const char *name;
    volatile unsigned limit; // Set at start; volatile because an operator may change it.
    OWN_LINE unsigned long requests;
};

struct service service __attribute__((aligned(64))) = {"tickets", 1000, 0};

static void *admit(void *unused) {
    (void)unused;
    uintptr_t admitted = 0;
    for (unsigned waiting = 0; running(); waiting = (waiting + 1) % 2048)
        if (waiting < service.limit) // @limit
            admitted++;
    return (void *)admitted;
}

static void *count_requests(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++)
        service.requests++; // @request
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t reader = start("admit", admit, NULL);
    pthread_t writer = start("count", count_requests, NULL);
    run_for_argument(argc, argv);
    int right = finish(reader) > 0;
    right &= finish(writer) == service.requests;
    return verdict(right, same_line(&service.limit, &service.requests) == SHARES_LINE);
}
