// One producer and one consumer with moodycamel::ConcurrentQueue and tokens.
//
// Known by concurrentqueue.h: a producer's object has `tailIndex`, which it stores and the consumer reads, and `headIndex`,
// `dequeueOptimisticCount` and `dequeueOvercommit`, which the consumer changes, side by side: mixed. On the next line the
// consumer reads `blockIndex` beside `pr_blockIndexFront`, which the producer stores with each block: false. There is no
// lock.
//
// FIELD: {"language": "c++", "apt": ["libconcurrentqueue-dev"], "findings": [
//   {"kinds": ["mixed-sharing"], "names": ["tailIndex", "headIndex", "dequeueOptimisticCount"], "advice_says": ["alignas"],
//    "advice_never": ["looks like a lock"]},
//   {"kinds": ["false-sharing", "mixed-sharing"], "names": ["pr_blockIndex"], "advice_says": ["alignas"], "missing": "right"}],
//   "others": ["heap", "mapping", "queue"]}
#define NDEBUG
#include <concurrentqueue/concurrentqueue.h>

#include "ready.h"

static moodycamel::ConcurrentQueue<long> queue(4096);

static void produce() {
    moodycamel::ProducerToken token(queue);
    for (long i = 0;;)
        if (queue.size_approx() < 2048 && queue.try_enqueue(token, i)) i++;
}

static void consume() {
    moodycamel::ConsumerToken token(queue);
    for (long sum = 0, value;;)
        if (queue.try_dequeue(token, value)) sum += value;
}

int main() { run_both(produce, consume); }
