// Each thread fills whole lines of its own, side by side in one array: neighbours, but no sharing.
//
// ANSWER: {"variant": "plain", "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

#define WORDS 16 // Two lines for each thread.

volatile unsigned long rows[2][WORDS] __attribute__((aligned(64)));

static void *fill(void *argument) {
    volatile unsigned long *row = argument;
    uintptr_t n = 0;
    for (; running(); n++)
        for (int i = 0; i < WORDS; i++)
            row[i] += n;
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t upper = start("upper", fill, (void *)rows[0]);
    pthread_t lower = start("lower", fill, (void *)rows[1]);
    run_for_argument(argc, argv);
    int right = 1;
    unsigned long n = finish(upper), m = finish(lower);
    for (int i = 0; i < WORDS; i++)
        right &= rows[0][i] == n * (n - 1) / 2 && rows[1][i] == m * (m - 1) / 2;
    return verdict(right, !same_line(&rows[0][WORDS - 1], &rows[1][0]));
}
