// Two small objects, each with a malloc of its own, that happen to be neighbours: the C library puts blocks of 24
// bytes 32 bytes apart.
//
// ANSWER: {"variant": "plain", "observer": "allocations", "tool_arguments": ["--heap"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap"}, "fields": [
//     {"offset": 0, "op": "rmw", "function": "produce", "line": "@made", "thread": "produce"},
//     {"offset": 32, "op": "rmw", "function": "consume", "line": "@used", "thread": "consume"}]}]}
// ANSWER: {"variant": "padded", "tool_arguments": ["--heap"], "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct producer {
    unsigned long made, spare[2];
};

struct consumer {
    unsigned long used, spare[2];
};

#ifdef PADDED
static void *allocate(size_t size) { return aligned_alloc(64, (size + 63) / 64 * 64); }
#else
#define allocate malloc
#endif

static void *produce(void *argument) {
    struct producer *own = argument;
    uintptr_t n = 0;
    for (; running(); n++)
        own->made++; // @made
    return (void *)n;
}

static void *consume(void *argument) {
    struct consumer *own = argument;
    uintptr_t n = 0;
    // Not what the other does, else a compiler may fold the two functions into one.
    for (; running(); n += 2)
        own->used += 2; // @used
    return (void *)n;
}

static __attribute__((noinline)) struct producer *make_producer(void) {
    struct producer *made = allocate(sizeof *made); // @producer
    if (made == NULL)
        exit(3);
    made->made = 0;
    return made;
}

static __attribute__((noinline)) struct consumer *make_consumer(void) {
    struct consumer *made = allocate(sizeof *made); // @consumer
    if (made == NULL)
        exit(3);
    made->used = 0;
    return made;
}

int main(int argc, char **argv) {
    // Blocks 32 bytes apart, until the next one starts in the first half of a line: the one after is on the same.
    uintptr_t before = 0, last;
    do {
        last = before;
        before = (uintptr_t)malloc(24);
        // Else a compiler may leave the allocations out.
        __asm__ volatile("" : "+r"(before));
    } while (before != last + 32 || before % 64 < 32);
    struct producer *producer = make_producer();
    struct consumer *consumer = make_consumer();
    pthread_t first = start("produce", produce, producer);
    pthread_t second = start("consume", consume, consumer);
    run_for_argument(argc, argv);
    int right = finish(first) == producer->made;
    right &= finish(second) == consumer->used;
    return verdict(right, same_line(&producer->made, &consumer->used) == SHARES_LINE);
}
