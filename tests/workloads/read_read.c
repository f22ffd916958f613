// Two threads read one table, and nobody writes: a line in every cache, and no sharing to report.
//
// ANSWER: {"variant": "plain", "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

const volatile unsigned long weights[8] __attribute__((aligned(64))) = {3, 1, 4, 1, 5, 9, 2, 6};

static void *sum_weights(void *argument) {
    uintptr_t first = (uintptr_t)argument, rounds = 0;
    unsigned long sum = 0;
    for (; running(); rounds++)
        sum += weights[first] + weights[first + 2] + weights[first + 4];
    unsigned long once = weights[first] + weights[first + 2] + weights[first + 4];
    return (void *)(uintptr_t)(rounds > 0 && sum == rounds * once);
}

int main(int argc, char **argv) {
    pthread_t even = start("even", sum_weights, (void *)0);
    pthread_t odd = start("odd", sum_weights, (void *)1);
    run_for_argument(argc, argv);
    int right = finish(even) == 1;
    right &= finish(odd) == 1;
    return verdict(right, same_line(&weights[0], &weights[7]));
}
