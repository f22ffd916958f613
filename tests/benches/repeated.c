// What a prefetchw in front of each load costs a walk over 8-byte elements whose lines are here, and what it costs to look
// first whether an element begins a line.
//
// Usage: repeated ROUNDS. Prints, for each loop, the median of TSC cycles an element. Loops are timed one after the other in each
// round, on lines in the first cache level.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#define ELEMENTS 2048
#define MOST_ROUNDS 100000

static uint64_t numbers[ELEMENTS] __attribute__((aligned(64)));

#define NOTHING(p)
#define EACH(p) __asm__ volatile("prefetchw %0" ::"m"(*(p)))
#define EACH_LINE(p)                                                                                                   \
    if (!((uintptr_t)(p) & 56))                                                                                        \
    EACH(p)

#define INTEGER(p) __asm__ volatile("addq %1, %0" : "+r"(sum) : "m"(*(p)))
#define FLOATING(p) __asm__ volatile("addsd %1, %0" : "+x"(real) : "m"(*(p)))

#define WALK(name, prefetch, add)                                                                                      \
    __attribute__((noinline, aligned(64))) static uint64_t name(void) {                                                \
        uint64_t sum = 0;                                                                                              \
        double real = 0;                                                                                               \
        for (uint64_t *p = numbers; p != numbers + ELEMENTS; p++) {                                                    \
            __asm__ volatile("" : "+r"(p));                                                                            \
            prefetch(p);                                                                                               \
            add(p);                                                                                                    \
        }                                                                                                              \
        return sum + (uint64_t)real;                                                                                   \
    }

// Eight elements in each iteration, into four sums: as fast as the CPU loads.
#define UNROLLED(name, prefetch)                                                                                       \
    __attribute__((noinline, aligned(64))) static uint64_t name(void) {                                                \
        uint64_t sums[4] = {0};                                                                                        \
        for (uint64_t *p = numbers; p != numbers + ELEMENTS; p += 8) {                                                 \
            __asm__ volatile("" : "+r"(p));                                                                            \
            _Pragma("GCC unroll 8") for (int n = 0; n < 8; n++) {                                                      \
                prefetch(p + n);                                                                                       \
                __asm__ volatile("addq %1, %0" : "+r"(sums[n % 4]) : "m"(p[n]));                                       \
            }                                                                                                          \
        }                                                                                                              \
        return sums[0] + sums[1] + sums[2] + sums[3];                                                                  \
    }
#define FIRST(p)                                                                                                       \
    if (n == 0)                                                                                                        \
    EACH(p)

UNROLLED(unrolled, NOTHING)
UNROLLED(unrolled_each, EACH)
UNROLLED(unrolled_line, FIRST)
WALK(integer, NOTHING, INTEGER)
WALK(integer_each, EACH, INTEGER)
WALK(integer_line, EACH_LINE, INTEGER)
WALK(floating, NOTHING, FLOATING)
WALK(floating_each, EACH, FLOATING)
WALK(floating_line, EACH_LINE, FLOATING)

static const struct {
    const char *name;
    uint64_t (*walk)(void);
} walks[] = {
    {"integer, no prefetch", integer},
    {"integer, each element", integer_each},
    {"integer, each line", integer_line},
    {"unrolled, no prefetch", unrolled},
    {"unrolled, each element", unrolled_each},
    {"unrolled, first of each line", unrolled_line},
    {"floating-point, no prefetch", floating},
    {"floating-point, each element", floating_each},
    {"floating-point, each line", floating_line},
};
enum { WALKS = sizeof walks / sizeof *walks };

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 2001;
    if (rounds < 1 || rounds > MOST_ROUNDS)
        return 2;
    double *took = malloc(WALKS * (size_t)rounds * sizeof *took);
    if (!took)
        return 4;
    volatile uint64_t result;
    for (long round = 0; round < rounds; round++)
        for (int n = 0; n < WALKS; n++) {
            unsigned unused;
            result = walks[n].walk();
            uint64_t before = __rdtscp(&unused);
            _mm_lfence();
            result = walks[n].walk();
            uint64_t after = __rdtscp(&unused);
            took[n * rounds + round] = (double)(after - before) / ELEMENTS;
        }
    (void)result;
    for (int n = 0; n < WALKS; n++) {
        qsort(took + n * rounds, (size_t)rounds, sizeof *took, ascending);
        printf("%-30s %.2f\n", walks[n].name, took[n * rounds + rounds / 2]);
    }
    return 0;
}
