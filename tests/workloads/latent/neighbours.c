// Two threads, each with an object of its own, which lie next to each other and begin with a line: variables that ask for that,
// with -DCHANCE variables that do not and have it from what lies before them, or with -DMALLOC two blocks of the heap. The one
// writes the last word of the first, the other the first word of the second, 16 bytes away or less. With -DAPART each uses the
// word in the middle, a line from the other's, so that only lines of 128 bytes have both.
#include "turns.h"

#ifndef ROUNDS
#define ROUNDS 200
#endif

// With the header of the block behind it, 64 bytes.
#define WORDS 7

#ifdef CHANCE
#define IN_ORDER __attribute__((section(".in_order"), used))
// In this order or the other: the section begins with a line, and each is some of them. Others' variables are far.
IN_ORDER _Alignas(64) char a_line[64] = {1};
IN_ORDER long upper_or_lower[8] = {0}, lower_or_upper[8] = {0};
IN_ORDER char far_from_others[256] = {1};
#else
_Alignas(64) long upper_or_lower[8], lower_or_upper[8];
#endif

struct job {
    long *word;
    int number;
    char own_lines[240];
};

static void *add(void *argument) {
    const struct job *job = argument;
    long *word = job->word;
    const int n = job->number;
    for (int round = 0; round < ROUNDS; round++) {
        wait_for_turn(n);
        __asm__ volatile("addq $1,%0" : "+m"(*word));
        pass_turn(!n);
    }
    return NULL;
}

// By numbers: of pointers to two objects a compiler knows that they are not equal.
static int follows(const long *first, const long *second) {
    uintptr_t at[2] = {(uintptr_t)first, (uintptr_t)second};
    __asm__("" : "+r"(at[0]), "+r"(at[1]));
    return at[1] == at[0] + 64;
}

int main(void) {
    static struct job jobs[2];
#ifdef MALLOC
    long *first, *second;
    do {
        // Blocks are multiples of 16 bytes.
        if (malloc(24) == NULL)
            return 3;
        first = malloc(WORDS * sizeof(long));
        second = malloc(WORDS * sizeof(long));
    } while (first != NULL && ((uintptr_t)first % 64 != 0 || !follows(first, second)));
#else
    long *first = upper_or_lower, *second = lower_or_upper;
    if ((uintptr_t)first > (uintptr_t)second)
        first = lower_or_upper, second = upper_or_lower;
#endif
    if (first == NULL || !follows(first, second) || (uintptr_t)first % 64 != 0)
        return 3;
#ifdef APART
    first += 3, second += 3;
#else
    first += WORDS - 1;
#endif
    jobs[0] = (struct job){.word = first, .number = 0};
    jobs[1] = (struct job){.word = second, .number = 1};
    pthread_t other;
    pthread_create(&other, NULL, add, &jobs[1]);
    add(&jobs[0]);
    pthread_join(other, NULL);
    return *first == ROUNDS && *second == ROUNDS ? 0 : 4;
}
