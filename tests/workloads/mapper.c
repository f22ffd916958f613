// Two threads map and unmap memory of one process, for which both need the kernel's lock on its address space. Nothing
// of their own is shared: whoever has to wait spins in the kernel. What else the kernel shares there is its own; the
// test of its name looks for the lock.
//
// ANSWER: {"variant": "plain", "observer": "kernel-locks", "other_findings_because": "the kernel has more than the lock to share", "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

#include <sys/mman.h>

static void *map(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++) {
        void *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED || munmap(memory, 4096) != 0)
            exit(3);
    }
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t one = start("map", map, NULL);
    pthread_t other = start("map", map, NULL);
    run_for_argument(argc, argv);
    int right = finish(one) > 0;
    right &= finish(other) > 0;
    return verdict(right, 1);
}
