// One atomic counted by every thread: true sharing and nothing else, so padding is no cure. With a counter for
// each thread on lines of their own there is nothing to find.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "requests"}, "fields": [
//     {"field": "requests", "op": "rmw", "function": "count_requests", "line": "@request", "thread": "first"},
//     {"field": "requests", "op": "rmw", "function": "count_requests", "line": "@request", "thread": "second"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#include "stage/stage.h"
#include <atomic>

struct alignas(64) counter {
    std::atomic<unsigned long> n{0};
};

#ifdef PADDED
counter requests_of[2];
#else
std::atomic<unsigned long> requests alignas(64){0};
#endif

static void *count_requests(void *argument) {
    auto &counter = *static_cast<std::atomic<unsigned long> *>(argument);
    uintptr_t n = 0;
    for (; running(); n++)
        counter.fetch_add(1, std::memory_order_relaxed); // @request
    return reinterpret_cast<void *>(n);
}

int main(int argc, char **argv) {
#ifdef PADDED
    std::atomic<unsigned long> &one = requests_of[0].n, &two = requests_of[1].n;
#else
    std::atomic<unsigned long> &one = requests, &two = requests;
#endif
    pthread_t first = start("first", count_requests, &one);
    pthread_t second = start("second", count_requests, &two);
    run_for_argument(argc, argv);
    uintptr_t counted = finish(first) + finish(second);
    unsigned long total = &one == &two ? one.load() : one.load() + two.load();
    return verdict(counted == total, same_line(&one, &two) == SHARES_LINE);
}
