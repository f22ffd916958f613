// Two threads count on a page that is unmapped halfway through: they go on in a page elsewhere. Each page has a
// falsely shared line of its own.
//
// ANSWER: {"variant": "plain", "observer": "windows", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap"}, "fields": [
//     {"offset": 0, "op": "rmw", "function": "count", "line": "@first", "thread": "left"},
//     {"offset": 8, "op": "rmw", "function": "count", "line": "@first", "thread": "right"}]},
//   {"kind": "false-sharing", "object": {"kind": "heap"}, "fields": [
//     {"offset": 0, "op": "rmw", "function": "count", "line": "@second", "thread": "left"},
//     {"offset": 8, "op": "rmw", "function": "count", "line": "@second", "thread": "right"}]}]}
// ANSWER: {"variant": "padded", "observer": "windows", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"
#include <sys/mman.h>

struct page {
    OWN_LINE unsigned long left;
    OWN_LINE unsigned long right;
};

static struct page *first, *second;

// Stored once; on lines of its own.
static struct {
    int moved;
    pthread_barrier_t move;
    char own_lines[64];
} mover __attribute__((aligned(128)));

static inline int settled(void) { return !__atomic_load_n(&mover.moved, __ATOMIC_RELAXED); }

// At two lines of the source, so that the pages are two things to whoever knows where they were mapped.
#define PAGE mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)

// Which of the two counters is a thread's own.
static unsigned long *own(struct page *page, uintptr_t is_right) { return is_right ? &page->right : &page->left; }

__attribute__((noinline)) static void *count(void *is_right) {
    unsigned long *counter = own(first, (uintptr_t)is_right);
    uintptr_t n = 0;
    for (; settled(); n++)
        ++*counter; // @first
    int right = *counter == n;
    pthread_barrier_wait(&mover.move); // Nobody is in the first page any more.
    pthread_barrier_wait(&mover.move); // The first page is gone.
    counter = own(second, (uintptr_t)is_right);
    for (n = 0; running(); n++)
        ++*counter; // @second
    return (void *)(uintptr_t)(right && *counter == n && n > 0);
}

int main(int argc, char **argv) {
    first = PAGE; // @first_mmap
    // While the first is there, so that it lies elsewhere.
    second = PAGE; // @second_mmap
    if (first == MAP_FAILED || second == MAP_FAILED || pthread_barrier_init(&mover.move, NULL, 3) != 0)
        return 3;
    int together = same_line(&first->left, &first->right) && same_line(&second->left, &second->right);
    pthread_t left = start("left", count, (void *)0);
    pthread_t right = start("right", count, (void *)1);
    long ms = argument_ms(argc, argv);
    sleep_ms(ms / 2);
    __atomic_store_n(&mover.moved, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&mover.move);
    if (munmap(first, sizeof *first) != 0)
        return 3;
    pthread_barrier_wait(&mover.move);
    sleep_ms(ms - ms / 2);
    __atomic_store_n(&curtain.down, 1, __ATOMIC_RELAXED);
    int counts_right = finish(left) == 1;
    counts_right &= finish(right) == 1;
    return verdict(counts_right, together == SHARES_LINE);
}
