// A thread-local struct of a library: its thread hands it to another, and both count in it. Built twice: with
// -DLIBRARY as the library, without as the program, which opens it beside itself, or with -DLINKED is linked to it.
//
// ANSWER: {"variant": "plain", "library_flags": ["-DLIBRARY"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "tls", "name": "per_thread", "type": "struct per_thread"}, "fields": [
//     {"field": "per_thread.hits", "op": "rmw", "function": "count_hits", "line": "@hits", "thread": "worker-1"},
//     {"field": "per_thread.misses", "op": "rmw", "function": "count_misses", "line": "@misses", "thread": "worker-2"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "library_flags": ["-DLIBRARY"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct per_thread {
    OWN_LINE unsigned long hits;
    OWN_LINE unsigned long misses;
};

struct per_thread *lend(void);
uintptr_t count_hits(struct per_thread *counts, const int *stop);
uintptr_t count_misses(struct per_thread *counts, const int *stop);

#ifdef LIBRARY

static __thread struct per_thread per_thread __attribute__((aligned(64)));

struct per_thread *lend(void) { return &per_thread; }

uintptr_t count_hits(struct per_thread *counts, const int *stop) {
    uintptr_t n = 0;
    for (; !__atomic_load_n(stop, __ATOMIC_RELAXED); n++)
        counts->hits++; // @hits
    return n;
}

uintptr_t count_misses(struct per_thread *counts, const int *stop) {
    uintptr_t n = 0;
    for (; !__atomic_load_n(stop, __ATOMIC_RELAXED); n++)
        counts->misses++; // @misses
    return n;
}

#else

#include "stage/library.h"

static struct per_thread *(*lend_of)(void);
static uintptr_t (*hits_of)(struct per_thread *, const int *);
static uintptr_t (*misses_of)(struct per_thread *, const int *);
static struct per_thread *lent; // Stored before the barrier, read after it.
static pthread_barrier_t handed_over;

static void *own(void *unused) {
    (void)unused;
    struct per_thread *mine = lend_of();
    lent = mine;
    pthread_barrier_wait(&handed_over);
    uintptr_t n = hits_of(mine, &curtain.down);
    pthread_barrier_wait(&handed_over); // The memory is this thread's: it must stay until the other is done.
    return (void *)(uintptr_t)(mine->hits == n && same_line(&mine->hits, &mine->misses) == SHARES_LINE);
}

static void *borrow(void *unused) {
    (void)unused;
    pthread_barrier_wait(&handed_over);
    uintptr_t n = misses_of(lent, &curtain.down);
    int right = lent->misses == n;
    pthread_barrier_wait(&handed_over);
    return (void *)(uintptr_t)right;
}

static int find_library(void) {
#ifdef LINKED
    lend_of = lend;
    hits_of = count_hits;
    misses_of = count_misses;
    return 1;
#else
    void *library = open_library();
    if (library == NULL)
        return 0;
    lend_of = (struct per_thread * (*)(void)) dlsym(library, "lend");
    hits_of = (uintptr_t(*)(struct per_thread *, const int *))dlsym(library, "count_hits");
    misses_of = (uintptr_t(*)(struct per_thread *, const int *))dlsym(library, "count_misses");
    return 1;
#endif
}

int main(int argc, char **argv) {
    if (!find_library())
        return 3;
    pthread_barrier_init(&handed_over, NULL, 2);
    pthread_t first = start("worker-1", own, NULL);
    pthread_t second = start("worker-2", borrow, NULL);
    run_for_argument(argc, argv);
    uintptr_t right = finish(first);
    right &= finish(second);
    return verdict((int)right, 1);
}

#endif
