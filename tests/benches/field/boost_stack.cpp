// Two threads push to and pop from one boost::lockfree::stack.
//
// Known by boost/lockfree/stack.hpp: all that happens is a compare-and-swap of `tos`, and of `pool_` of the free list,
// each with padding after it: both truly shared, on lines of their own. So are the nodes, whose `next` each thread
// writes and reads. No layout helps.
//
// FIELD: {"language": "c++", "apt": ["libboost-dev"], "findings": [
//   {"kinds": ["true-sharing"], "names": ["tos"], "advice_never": ["alignas"]},
//   {"kinds": ["true-sharing"], "names": ["pool_"], "advice_never": ["alignas"]},
//   {"kinds": ["true-sharing"], "names": ["node", "next"], "advice_never": ["alignas"], "missing": "right"}]}
#include <boost/lockfree/stack.hpp>

#include "ready.h"

static boost::lockfree::stack<long> values(1024);

static void work() {
    for (long value = 0;; value++) {
        values.push(value);
        values.pop(value);
    }
}

int main() { run_both(work, work); }
