// Two counters of one struct, counted by code that is in no file; a jitdump file tells its names and lines. The
// second function is first told of under a name it then loses, as code that a compiler replaced.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "counters", "type": "struct counters"}, "fields": [
//     {"field": "counters.hits", "op": "rmw", "function": "count_hits", "line": "@hits", "thread": "hits"},
//     {"field": "counters.misses", "op": "rmw", "function": "count_misses", "line": "@misses", "thread": "misses"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

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

// What follows is all that tells of the lines: the copies have no debug information.
enum { HITS_LINE = __LINE__ - 5, MISSES_LINE = __LINE__ + 6 };

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

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void put(FILE *dump, const void *bytes, size_t size) {
    if (fwrite(bytes, 1, size, dump) != size)
        exit(3);
}

static void put32(FILE *dump, uint32_t number) { put(dump, &number, sizeof number); }

static void put64(FILE *dump, uint64_t number) { put(dump, &number, sizeof number); }

static void prefix(FILE *dump, uint32_t kind, size_t payload) {
    put32(dump, kind);
    put32(dump, (uint32_t)(16 + payload));
    put64(dump, now());
}

// All of a function is of one line.
static void tell(FILE *dump, struct compiled code, const char *name, uint32_t line, uint64_t index) {
    const char *file = __FILE__;
    prefix(dump, 2, 16 + 16 + strlen(file) + 1);
    put64(dump, (uint64_t)code.start);
    put64(dump, 1);
    put64(dump, (uint64_t)code.start);
    put32(dump, line);
    put32(dump, 0);
    put(dump, file, strlen(file) + 1);
    prefix(dump, 0, 40 + strlen(name) + 1 + code.size);
    put32(dump, (uint32_t)getpid());
    put32(dump, (uint32_t)getpid());
    put64(dump, (uint64_t)code.start);
    put64(dump, (uint64_t)code.start);
    put64(dump, code.size);
    put64(dump, index);
    put(dump, name, strlen(name) + 1);
    put(dump, code.start, code.size);
}

int main(int argc, char **argv) {
    char path[64];
    FILE *dump = fopen(told_in(path, sizeof path, "jit", "dump"), "w+");
    if (dump == NULL)
        return 3;
    put32(dump, 0x4A695444);
    put32(dump, 1);
    put32(dump, 40);
#if defined(__x86_64__)
    put32(dump, EM_X86_64);
#else
    put32(dump, EM_AARCH64);
#endif
    put32(dump, 0);
    put32(dump, (uint32_t)getpid());
    put64(dump, now());
    put64(dump, 0);
    // By this mapping tools find the file.
    if (fflush(dump) != 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED)
        return 3;
    struct compiled code[] = {COMPILE(count_hits), COMPILE(count_misses)};
    tell(dump, code[0], code[0].name, HITS_LINE, 0);
    tell(dump, code[1], "replaced", HITS_LINE, 1);
    tell(dump, code[1], code[1].name, MISSES_LINE, 2);
    if (fflush(dump) != 0)
        return 3;
    pthread_t first = start("hits", hits, code[0].start);
    pthread_t second = start("misses", misses, code[1].start);
    run_for_argument(argc, argv);
    int right = finish(first) == counters.hits;
    right &= 2 * finish(second) == counters.misses;
    unlink(path);
    return verdict(right, same_line(&counters.hits, &counters.misses) == SHARES_LINE);
}
