// `while (go) { s->served++; }`: the body falls through into the condition, so that samples only ever point into
// the condition's block and never into the one that stores.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "desk", "type": "struct desk"}, "fields": [
//     {"field": "desk.served", "op": "rmw", "function": "serve", "line": "@served", "thread": "serve"},
//     {"field": "desk.refused", "op": "rmw", "function": "refuse", "line": "@refused", "thread": "refuse"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"
#include <stdatomic.h>

struct desk {
    OWN_LINE unsigned long served;
    OWN_LINE unsigned long refused;
};

struct desk desk __attribute__((aligned(64)));

static struct {
    atomic_int value;
    char own_lines[124];
} go __attribute__((aligned(128))) = {1, {0}};

static void *serve(void *argument) {
    struct desk *s = argument;
    while (atomic_load_explicit(&go.value, memory_order_relaxed)) {
        s->served++; // @served
    }
    return NULL;
}

static void *refuse(void *argument) {
    struct desk *s = argument;
    while (atomic_load_explicit(&go.value, memory_order_relaxed)) {
        s->refused++; // @refused
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t server = start("serve", serve, &desk);
    pthread_t refuser = start("refuse", refuse, &desk);
    sleep_ms(argument_ms(argc, argv));
    atomic_store_explicit(&go.value, 0, memory_order_relaxed);
    int right = finish(server) == 0;
    right &= finish(refuser) == 0;
    right &= desk.served > 0 && desk.refused > 0;
    return verdict(right, same_line(&desk.served, &desk.refused) == SHARES_LINE);
}
