// Two threads that write to one eventfd and read from it. Each call takes a reference to the descriptor's `struct file`
// and gives it back, so the count of references moves between the CPUs (include/linux/file_ref.h), and so do the lock
// and the number of the eventfd itself (fs/eventfd.c). All of that is memory of the kernel. Run with `own` behind the
// time, each thread has an eventfd of its own and nothing is shared.

#define _GNU_SOURCE
#include "../stage/stage.h"
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void *post(void *argument) {
    int descriptor = *(int *)argument;
    uintptr_t failed = 0;
    uint64_t one = 1, read_back;
    while (running()) {
        failed += write(descriptor, &one, sizeof one) != sizeof one;
        // The other thread may have taken both.
        (void)!read(descriptor, &read_back, sizeof read_back);
    }
    return (void *)failed;
}

int main(int argc, char **argv) {
    int is_own = argc > 2 && strcmp(argv[2], "own") == 0;
    int descriptors[2] = {eventfd(0, EFD_NONBLOCK), is_own ? eventfd(0, EFD_NONBLOCK) : -1};
    if (!is_own)
        descriptors[1] = descriptors[0];
    if (descriptors[0] < 0 || descriptors[1] < 0)
        return 3;
    pthread_t first = start("worker-0", post, &descriptors[0]);
    pthread_t second = start("worker-1", post, &descriptors[1]);
    run_for_argument(argc, argv);
    int right = finish(first) == 0;
    right &= finish(second) == 0;
    return verdict(right, SHARES_LINE);
}
