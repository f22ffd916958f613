// Structs of exactly one line each, one for each thread, but the array starts 16 bytes into a line: the end of
// one struct and the start of the next meet.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "table", "type": "struct table"}, "fields": [
//     {"field": "table.slots[0].last_ns", "op": "store", "function": "serve", "line": "@last", "thread": "slot-0"},
//     {"field": "table.slots[1].served", "op": "rmw", "function": "serve", "line": "@served", "thread": "slot-1"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct slot {
    unsigned long served;
    unsigned long histogram[6];
    unsigned long last_ns;
};

_Static_assert(sizeof(struct slot) == 64, "a slot is as large as a line");

struct table {
#ifdef PADDED
    unsigned long header[8];
#else
    unsigned long header[2];
#endif
    struct slot slots[2];
};

struct table table __attribute__((aligned(64)));

static void *serve(void *argument) {
    struct slot *slot = argument;
    uintptr_t n = 0;
    for (; running(); n++) {
        slot->served++;     // @served
        slot->last_ns = n;  // @last
    }
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t first = start("slot-0", serve, &table.slots[0]);
    pthread_t second = start("slot-1", serve, &table.slots[1]);
    run_for_argument(argc, argv);
    int right = finish(first) == table.slots[0].served;
    right &= finish(second) == table.slots[1].served;
    return verdict(right, same_line(&table.slots[0].last_ns, &table.slots[1].served) == SHARES_LINE);
}
