// Becomes itself again halfway through, by exec and with its threads in full swing: the same path and perhaps the same
// addresses, but another address space, another line and other counters.
//
// ANSWER: {"variant": "plain", "observer": "windows", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "former", "type": "struct life"}, "fields": [
//     {"field": "former.left", "op": "rmw", "function": "count", "line": "@count", "thread": "left"},
//     {"field": "former.right", "op": "rmw", "function": "count", "line": "@count", "thread": "right"}]},
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "latter", "type": "struct life"}, "fields": [
//     {"field": "latter.left", "op": "rmw", "function": "count", "line": "@count", "thread": "left"},
//     {"field": "latter.right", "op": "rmw", "function": "count", "line": "@count", "thread": "right"}]}]}
// ANSWER: {"variant": "padded", "observer": "windows", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"
#include <stdio.h>
#include <unistd.h>

struct life {
    OWN_LINE unsigned long left;
    OWN_LINE unsigned long right;
};

struct life former __attribute__((aligned(128)));
struct life latter __attribute__((aligned(128)));

__attribute__((noinline)) static void *count(void *argument) {
    unsigned long *counter = argument;
    uintptr_t n = 0;
    for (; running(); n++)
        ++*counter; // @count
    return (void *)n;
}

int main(int argc, char **argv) {
    long half_ms = argument_ms(argc, argv) / 2;
    struct life *life = argc > 2 ? &latter : &former;
    pthread_t left = start("left", count, &life->left);
    pthread_t right = start("right", count, &life->right);
    sleep_ms(half_ms);
    if (life == &former) {
        char told[32];
        snprintf(told, sizeof told, "%ld", 2 * half_ms);
        execl("/proc/self/exe", argv[0], told, "again", (char *)NULL);
        return 3;
    }
    __atomic_store_n(&curtain.down, 1, __ATOMIC_RELAXED);
    unsigned long by_left = finish(left), by_right = finish(right);
    int counts_right = by_left > 0 && life->left == by_left && by_right > 0 && life->right == by_right;
    return verdict(counts_right, same_line(&life->left, &life->right) == SHARES_LINE);
}
