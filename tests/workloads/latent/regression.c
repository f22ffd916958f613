// The sums of a linear regression as Phoenix keeps them (Ranger et al., HPCA 2007): a struct of 64 bytes for each thread, in an
// array that begins START bytes behind the start of a line. Each thread writes the last five words of its own. Where a line ends
// among these, two threads write to one line; tests/tests/latent.rs counts the lines. With -DPADDED each thread has 128 bytes.
// With -DFREE nobody waits for anybody.
#include "turns.h"

#ifndef START
#define START 0
#endif
#ifndef THREADS
#define THREADS 4
#endif
#ifndef ROUNDS
#define ROUNDS 60
#endif

struct part {
    pthread_t tid;
    long *points;
    int num_elems;
    long long SX, SY, SXX, SYY, SXY;
#ifdef PADDED
    char own_lines[64];
#endif
};

struct job {
    struct part *part;
    int number;
    char own_lines[240];
};

static void *sum(void *argument) {
    const struct job *job = argument;
    struct part *part = job->part;
    const int n = job->number, next = (n + 1) % THREADS;
    (void)n, (void)next;
    for (int round = 0; round < ROUNDS; round++) {
        TURN(n);
        __asm__ volatile("addq $1,%0" : "+m"(part->SX));
        PASS(next);
        TURN(n);
        __asm__ volatile("addq $1,%0" : "+m"(part->SYY));
        PASS(next);
        TURN(n);
        __asm__ volatile("addq $1,%0" : "+m"(part->SY));
        PASS(next);
        TURN(n);
        __asm__ volatile("addq $1,%0" : "+m"(part->SXY));
        PASS(next);
        TURN(n);
        __asm__ volatile("addq $1,%0" : "+m"(part->SXX));
        PASS(next);
    }
    return NULL;
}

int main(void) {
    static struct job jobs[THREADS];
    static pthread_t threads[THREADS];
    char *memory = malloc(THREADS * sizeof(struct part) + 256);
    if (memory == NULL)
        return 3;
    memory += (128 - (uintptr_t)memory % 128) % 128;
    struct part *parts = (struct part *)(memory + START);
    for (int n = 0; n < THREADS; n++)
        jobs[n] = (struct job){.part = &parts[n], .number = n};
    for (int n = 0; n < THREADS; n++)
        pthread_create(&threads[n], NULL, sum, &jobs[n]);
    for (int n = 0; n < THREADS; n++)
        pthread_join(threads[n], NULL);
    for (int n = 0; n < THREADS; n++)
        if (parts[n].SXY != ROUNDS)
            return 4;
    return 0;
}
