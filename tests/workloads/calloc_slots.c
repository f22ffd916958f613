// A calloc'd array with a slot of 16 bytes for each thread, reached through a function that allocates for others.
//
// ANSWER: {"variant": "plain", "observer": "allocations", "tool_arguments": ["--heap"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap"}, "fields": [
//     {"offset": 0, "op": "rmw", "function": "serve", "line": "@served", "thread": "serve-0"},
//     {"offset": 16, "op": "rmw", "function": "serve", "line": "@served", "thread": "serve-1"}]}]}
// ANSWER: {"variant": "padded", "tool_arguments": ["--heap"], "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct slot {
    unsigned long served, spare;
#ifdef PADDED
    char own_line[112];
#endif
};

static __attribute__((noinline)) void *zeroed(size_t count, size_t size) {
    void *made = calloc(count, size); // @calloc
    if (made == NULL)
        exit(3);
    return made;
}

static __attribute__((noinline)) struct slot *make_slots(size_t threads) {
    struct slot *slots = zeroed(threads, sizeof *slots); // @slots
    // Not a tail call, which would leave no frame.
    __asm__ volatile("" : "+r"(slots));
    return slots;
}

static void *serve(void *argument) {
    struct slot *mine = argument;
    uintptr_t n = 0;
    for (; running(); n++)
        mine->served++; // @served
    return (void *)n;
}

int main(int argc, char **argv) {
    // Two slots of one line, whatever the first one's address.
    struct slot *slots = make_slots(8);
    int at = 0;
#ifdef PADDED
    at = 1;
#else
    while (!same_line(&slots[at], &slots[at + 1]))
        at++;
#endif
    pthread_t first = start("serve-0", serve, &slots[at]);
    pthread_t second = start("serve-1", serve, &slots[at + 1]);
    run_for_argument(argc, argv);
    int right = finish(first) == slots[at].served;
    right &= finish(second) == slots[at + 1].served;
    return verdict(right, same_line(&slots[at], &slots[at + 1]) == SHARES_LINE);
}
