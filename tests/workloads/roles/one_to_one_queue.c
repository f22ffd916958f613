// A queue of one producer and one consumer: each end is advanced by one thread and read by the other.
//
// ROLES: {"head": "queue-end", "tail": "queue-end"}
// NEVER: lock ticket-lock overwritten-data

#define _GNU_SOURCE
#include "../stage/stage.h"

enum { SLOTS = 64 };

struct queue {
    long *slots;
    unsigned long mask;
    unsigned long head;
    unsigned long tail;
};

struct queue queue __attribute__((aligned(64)));
static long slots[SLOTS] __attribute__((aligned(64)));

static void *produce(void *unused) {
    (void)unused;
    long n = 0;
    while (running()) {
        unsigned long tail = __atomic_load_n(&queue.tail, __ATOMIC_RELAXED);
        if (tail - __atomic_load_n(&queue.head, __ATOMIC_ACQUIRE) > queue.mask)
            continue;
        queue.slots[tail & queue.mask] = n++;
        __atomic_store_n(&queue.tail, tail + 1, __ATOMIC_RELEASE);
    }
    return (void *)n;
}

static void *consume(void *unused) {
    (void)unused;
    long n = 0;
    while (running()) {
        unsigned long head = __atomic_load_n(&queue.head, __ATOMIC_RELAXED);
        if (head == __atomic_load_n(&queue.tail, __ATOMIC_ACQUIRE))
            continue;
        if (queue.slots[head & queue.mask] != n++)
            return NULL;
        __atomic_store_n(&queue.head, head + 1, __ATOMIC_RELEASE);
    }
    return (void *)n;
}

int main(int argc, char **argv) {
    queue.slots = slots;
    queue.mask = SLOTS - 1;
    pthread_t producer = start("producer", produce, NULL);
    pthread_t consumer = start("consumer", consume, NULL);
    run_for_argument(argc, argv);
    unsigned long put = finish(producer), got = finish(consumer);
    return verdict(put == queue.tail && got == queue.head && put - got <= SLOTS, same_line(&queue.head, &queue.tail));
}
