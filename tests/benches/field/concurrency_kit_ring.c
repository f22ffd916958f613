// One producer and one consumer with Concurrency Kit's ck_ring.
//
// Known by ck_ring.h: `c_head` (the consumer's) and `p_tail` (the producer's) have a line of padding between them. Each
// is stored by one thread and read by the other: truly shared, as are the slots. `size` and `mask` are only read.
//
// FIELD: {"language": "c", "apt": ["libck-dev"], "findings": [
//   {"kinds": ["true-sharing"], "names": ["c_head"], "advice_never": ["_Alignas"]},
//   {"kinds": ["true-sharing"], "names": ["p_tail"], "advice_never": ["_Alignas"]}],
//   "others": ["ring", "slots"]}
#include <ck_ring.h>

#include "ready.h"

static ck_ring_t ring;
static ck_ring_buffer_t slots[1024];

static void produce(void) {
    for (long i = 1;;)
        if (ck_ring_enqueue_spsc(&ring, slots, (void *)i)) i++;
}

static void consume(void) {
    void *value;
    for (long sum = 0;;)
        if (ck_ring_dequeue_spsc(&ring, slots, &value)) sum += (long)value;
}

int main(void) {
    ck_ring_init(&ring, 1024);
    run_both(produce, consume);
}
