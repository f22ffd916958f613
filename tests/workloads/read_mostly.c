// A setting that many threads read, and that one of them now and then reads and stores, all by the same functions:
// fetching the line for ownership at that load would make every reader take it from every other. No hint.
// Apart, what is stored lies where nobody else reads.
//
// ANSWER: {"variant": "plain", "observer": "windows", "findings": [
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "settings", "type": "struct settings"}, "fields": [
//     {"field": "settings.limit", "op": "load", "function": "get", "line": "@get", "thread": "reader"},
//     {"field": "settings.limit", "op": "store", "function": "set", "line": "@set", "thread": "owner"}]}],
//   "pairs": []}
// ANSWER: {"variant": "padded", "observer": "windows", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

enum { READERS = 3, READS_FOR_A_STORE = 16 };

struct settings {
    OWN_LINE unsigned long limit;
    OWN_LINE unsigned long draft;
};

struct settings settings __attribute__((aligned(64)));

#ifdef PADDED
#define STORED settings.draft
#else
#define STORED settings.limit
#endif

OUT_OF_LINE static unsigned long get(const unsigned long *setting) {
    return *setting; // @get
}

OUT_OF_LINE static void set(unsigned long *setting, unsigned long value) {
    *setting = value; // @set
    publish();
}

static void *apply(void *unused) {
    (void)unused;
    unsigned long last = 0, applied = 0;
    while (running()) {
        unsigned long limit = get(&settings.limit);
        if (limit < last)
            return NULL; // It only ever grows.
        last = limit;
        applied++;
    }
    return (void *)applied;
}

static void *revise(void *unused) {
    (void)unused;
    uintptr_t stored = 0;
    for (unsigned n = 0; running(); n = (n + 1) % READS_FOR_A_STORE) {
        unsigned long limit = get(&STORED);
        if (n == 0) {
            set(&STORED, limit + 1);
            stored++;
        }
    }
    return (void *)stored;
}

int main(int argc, char **argv) {
    pthread_t readers[READERS];
    readers[0] = start("reader", apply, NULL);
    pthread_t owner = start("owner", revise, NULL); // On the second CPU, shared with a reader.
    for (int i = 1; i < READERS; i++)
        readers[i] = start("reader", apply, NULL);
    run_for_argument(argc, argv);
    int right = 1;
    for (int i = 0; i < READERS; i++)
        right &= finish(readers[i]) > 0;
    unsigned long stored = finish(owner);
    right &= stored > 0 && STORED == stored;
    return verdict(right, same_line(&settings.limit, &STORED) == SHARES_LINE);
}
