// A library that is opened at run time; its global and its two functions share one line. Built twice: with
// -DLIBRARY as the library, without as the program, which finds it beside itself.
//
// ANSWER: {"variant": "plain", "library_flags": ["-DLIBRARY"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "traffic", "type": "struct traffic"}, "fields": [
//     {"field": "traffic.received", "op": "rmw", "function": "receive", "line": "@received", "thread": "receive"},
//     {"field": "traffic.sent", "op": "rmw", "function": "transmit", "line": "@sent", "thread": "send"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "library_flags": ["-DLIBRARY"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct traffic {
    OWN_LINE unsigned long received;
    OWN_LINE unsigned long sent;
};

#ifdef LIBRARY

struct traffic traffic __attribute__((aligned(64)));

uintptr_t receive(const int *stop) {
    uintptr_t n = 0;
    for (; !__atomic_load_n(stop, __ATOMIC_RELAXED); n++)
        traffic.received++; // @received
    return n;
}

uintptr_t transmit(const int *stop) {
    uintptr_t n = 0;
    for (; !__atomic_load_n(stop, __ATOMIC_RELAXED); n++)
        traffic.sent++; // @sent
    return n;
}

#else

#include "stage/library.h"

static void *call(void *function) { return (void *)((uintptr_t(*)(const int *))function)(&curtain.down); }

int main(int argc, char **argv) {
    void *library = open_library();
    if (library == NULL)
        return 3;
    struct traffic *traffic = dlsym(library, "traffic");
    pthread_t receiver = start("receive", call, dlsym(library, "receive"));
    pthread_t sender = start("send", call, dlsym(library, "transmit"));
    run_for_argument(argc, argv);
    int right = finish(receiver) == traffic->received;
    right &= finish(sender) == traffic->sent;
    return verdict(right, same_line(&traffic->received, &traffic->sent) == SHARES_LINE);
}

#endif
