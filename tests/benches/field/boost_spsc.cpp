// One producer and one consumer with a boost::lockfree::spsc_queue whose capacity is set when it is made.
//
// Known by boost/lockfree/spsc_queue.hpp: `write_index_` and `read_index_` have BOOST_LOCKFREE_CACHELINE_BYTES between
// them. Each is stored by one thread and read by the other: truly shared, as are the elements. `read_index_` has the
// queue's constant size and pointer beside it, which a thread only reads together with `read_index_` itself: measured on
// two CPUs, taking them apart gives nothing (0.41 s against 0.38 s of 0.2 to 1.0).
//
// FIELD: {"language": "c++", "apt": ["libboost-dev"], "findings": [
//   {"kinds": ["true-sharing"], "names": ["write_index_"], "advice_never": ["alignas"]},
//   {"kinds": ["true-sharing", "mixed-sharing"], "names": ["read_index_"]}],
//   "others": ["heap", "queue", "mapping"]}
#include <boost/lockfree/spsc_queue.hpp>

#include "ready.h"

static boost::lockfree::spsc_queue<long> queue(1024);

static void produce() {
    for (long i = 0;;)
        if (queue.push(i)) i++;
}

static void consume() {
    for (long sum = 0, value;;)
        if (queue.pop(value)) sum += value;
}

int main() { run_both(produce, consume); }
