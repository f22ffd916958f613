// The same queue as of `reader_writer_queue`, with its own checks: NDEBUG is not defined.
//
// Known by readerwriterqueue.h: without NDEBUG the queue has two flags more, `enqueuing` and `dequeuing`, one byte each
// and side by side. The producer sets and clears the one at each operation, the consumer the other; nobody reads the
// other's. False sharing, beside `tailBlock`, which both read.
//
// FIELD: {"language": "c++", "apt": ["libreaderwriterqueue-dev"], "findings": [
//   {"kinds": ["false-sharing", "mixed-sharing"], "names": ["enqueuing", "dequeuing"], "all_names": true, "advice_says": ["alignas"]}],
//   "others": ["heap", "mapping", "queue"]}
#include <readerwriterqueue/readerwriterqueue.h>

#include "ready.h"

static moodycamel::ReaderWriterQueue<long> queue(1024);

static void produce() {
    for (long i = 0;;)
        if (queue.try_enqueue(i)) i++;
}

static void consume() {
    for (long sum = 0, value;;)
        if (queue.try_dequeue(value)) sum += value;
}

int main() { run_both(produce, consume); }
