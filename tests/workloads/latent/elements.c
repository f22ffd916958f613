// An array with an element of BYTES for each of THREADS threads, which begins with a line, and the word of one more thread WORD
// bytes from its start, where that is given. By turns each thread adds to the first word of its element. tests/tests/latent.rs
// counts who meets whom; with -DTHREADS of one more, that is what one more thread brings.
#include "turns.h"

#ifndef THREADS
#define THREADS 3
#endif
#ifndef BYTES
#define BYTES 32
#endif
#ifndef ROUNDS
#define ROUNDS 100
#endif

struct element {
    long sum;
    char rest[BYTES - sizeof(long)];
};

#ifdef WORD
#define PLAYERS (THREADS + 1)
#else
#define PLAYERS THREADS
#endif

// What lies behind the array is behind it in all builds.
static struct {
    _Alignas(128) struct element elements[THREADS];
#ifdef WORD
    char gap[WORD - sizeof(struct element[THREADS])];
    long word;
#endif
} all;

struct job {
    long *word;
    int number;
    char own_lines[240];
};

static void *add(void *argument) {
    const struct job *job = argument;
    long *word = job->word;
    const int n = job->number, next = (n + 1) % PLAYERS;
    for (int round = 0; round < ROUNDS; round++) {
        wait_for_turn(n);
        __asm__ volatile("addq $1,%0" : "+m"(*word));
        pass_turn(next);
    }
    return NULL;
}

int main(void) {
    static struct job jobs[PLAYERS];
    static pthread_t threads[PLAYERS];
    for (int n = 0; n < THREADS; n++)
        jobs[n] = (struct job){.word = &all.elements[n].sum, .number = n};
#ifdef WORD
    jobs[THREADS] = (struct job){.word = &all.word, .number = THREADS};
#endif
    for (int n = 0; n < PLAYERS; n++)
        pthread_create(&threads[n], NULL, add, &jobs[n]);
    for (int n = 0; n < PLAYERS; n++)
        pthread_join(threads[n], NULL);
    return all.elements[THREADS - 1].sum == ROUNDS ? 0 : 4;
}
