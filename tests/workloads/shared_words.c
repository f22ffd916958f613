// Two words of memory that is shared with children to come, reached by pointers without a type: all that is known of
// them is where they are in the mapping.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "mapping", "name": "/dev/zero+0x1240"}, "fields": [
//     {"offset": 0, "op": "rmw", "function": "count", "line": "@count", "thread": "worker-0"},
//     {"offset": 8, "op": "rmw", "function": "count", "line": "@count", "thread": "worker-1"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"
#include <sys/mman.h>

#ifdef PADDED
#define APART 64
#else
#define APART 8
#endif

static void *count(void *word) {
    uintptr_t n = 0;
    for (; running(); n++)
        __asm__ volatile("lock incq (%0)" : : "r"(word) : "memory", "cc"); // @count
    return (void *)n;
}

int main(int argc, char **argv) {
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return 3;
    void *words[2] = {pages + 0x1240, pages + 0x1240 + APART};
    pthread_t first = start("worker-0", count, words[0]);
    pthread_t second = start("worker-1", count, words[1]);
    run_for_argument(argc, argv);
    int right = finish(first) == *(uintptr_t *)words[0];
    right &= finish(second) == *(uintptr_t *)words[1];
    return verdict(right, same_line(words[0], words[1]) == SHARES_LINE);
}
