// Two counters of one struct, counted by code that is in no file; a perf map tells its names. With a second argument
// "0x" the map's numbers have that prefix, with "none" there is no map.
//
// ANSWER: {"variant": "plain", "no_lines": true, "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "counters", "type": "struct counters"}, "fields": [
//     {"field": "counters.hits", "op": "rmw", "function": "count_hits", "line": "@hits", "thread": "hits"},
//     {"field": "counters.misses", "op": "rmw", "function": "count_misses", "line": "@misses", "thread": "misses"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "no_lines": true, "findings": []}

#define _GNU_SOURCE
#include "stage/jit.h"

struct counters {
    OWN_LINE unsigned long hits;
    OWN_LINE unsigned long misses;
};

struct counters counters __attribute__((aligned(64)));

COMPILED(count_hits) uintptr_t count_hits(unsigned long *counter, const int *stop) {
    uintptr_t n = 0;
    for (; !__atomic_load_n(stop, __ATOMIC_RELAXED); n++)
        *counter += 1; // @hits
    return n;
}

// Counts otherwise, so that no compiler makes one function of both.
COMPILED(count_misses) uintptr_t count_misses(unsigned long *counter, const int *stop) {
    uintptr_t n = 0;
    for (; !__atomic_load_n(stop, __ATOMIC_RELAXED); n++)
        *counter += 2; // @misses
    return n;
}

SECTION_OF(count_hits);
SECTION_OF(count_misses);

static void *hits(void *code) { return (void *)((counting)code)(&counters.hits, &curtain.down); }

static void *misses(void *code) { return (void *)((counting)code)(&counters.misses, &curtain.down); }

static void tell(const char *path, const char *prefix, const struct compiled *code, int count) {
    FILE *map = fopen(path, "w");
    if (map == NULL)
        exit(3);
    for (int i = 0; i < count; i++)
        fprintf(map, "%s%lx %s%zx %s\n", prefix, (unsigned long)code[i].start, prefix, code[i].size, code[i].name);
    if (fclose(map) != 0)
        exit(3);
}

int main(int argc, char **argv) {
    const char *how = argc > 2 ? argv[2] : "";
    char path[64];
    told_in(path, sizeof path, "perf", "map");
    struct compiled code[] = {COMPILE(count_hits), COMPILE(count_misses)};
    if (strcmp(how, "none") != 0)
        tell(path, how, code, 2);
    pthread_t first = start("hits", hits, code[0].start);
    pthread_t second = start("misses", misses, code[1].start);
    run_for_argument(argc, argv);
    int right = finish(first) == counters.hits;
    right &= 2 * finish(second) == counters.misses;
    unlink(path);
    return verdict(right, same_line(&counters.hits, &counters.misses) == SHARES_LINE);
}
