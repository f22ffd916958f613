// Two structs on the heap, each used by a thread of its own, by turns: 80 bytes from each other with a block between them, on
// two lines. If that were not there, they would be on one. With -DNEXT there is none: the first is as large as they are far from
// each other.
#include "turns.h"

#ifndef ROUNDS
#define ROUNDS 200
#endif

#ifdef NEXT
#define APART 64
#else
#define APART 80
#endif

struct head {
    long sum;
    long rest[APART == 64 ? 6 : 2];
};

struct tail {
    long sum;
    long rest[2];
};

static void *add_to_head(void *argument) {
    struct head *mine = argument;
    for (int round = 0; round < ROUNDS; round++) {
        wait_for_turn(0);
        __asm__ volatile("addq $1,%0" : "+m"(mine->sum));
        pass_turn(1);
    }
    return NULL;
}

static void *add_to_tail(void *argument) {
    struct tail *mine = argument;
    for (int round = 0; round < ROUNDS; round++) {
        wait_for_turn(1);
        __asm__ volatile("addq $1,%0" : "+m"(mine->sum));
        pass_turn(0);
    }
    return NULL;
}

int main(void) {
    struct head *head;
    struct tail *tail;
    int tries = 0;
    do {
        // Each time from somewhere else.
        if (malloc(16 * (tries++ % 5)) == NULL)
            return 3;
        head = malloc(sizeof *head);
#ifndef NEXT
        // The block between them.
        char *between = malloc(40);
        if (between == NULL)
            return 3;
#endif
        tail = malloc(sizeof *tail);
        if (head == NULL || tail == NULL)
            return 3;
        // Blocks are multiples of 16 bytes.
    } while ((uintptr_t)head % 128 != 16 || (uintptr_t)tail != (uintptr_t)head + APART);
    head->sum = tail->sum = 0;
    pthread_t other;
    pthread_create(&other, NULL, add_to_tail, tail);
    add_to_head(head);
    pthread_join(other, NULL);
    return head->sum == ROUNDS && tail->sum == ROUNDS ? 0 : 4;
}
