// A vector of atomics, one for each thread: four bytes apart on the heap.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap", "type": "std::atomic<int>"}, "fields": [
//     {"offset": 0, "op": "rmw", "function": "count_words", "line": "@word", "thread": "words-0"},
//     {"offset": 4, "op": "rmw", "function": "count_words", "line": "@word", "thread": "words-1"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#include "stage/stage.h"
#include <atomic>
#include <vector>

#ifdef PADDED
struct alignas(64) cell {
    std::atomic<int> n{0};
};
static std::atomic<int> &count_in(cell &cell) { return cell.n; }
#else
using cell = std::atomic<int>;
static std::atomic<int> &count_in(cell &cell) { return cell; }
#endif

struct reader {
    std::vector<cell> &words;
    size_t index;
};

static void *count_words(void *argument) {
    auto &self = *static_cast<reader *>(argument);
    uintptr_t n = 0;
    for (; running(); n++)
        count_in(self.words[self.index]).fetch_add(1, std::memory_order_relaxed); // @word
    return reinterpret_cast<void *>(n);
}

int main(int argc, char **argv) {
    std::vector<cell> words(2);
    reader readers[2] = {{words, 0}, {words, 1}};
    pthread_t first = start("words-0", count_words, &readers[0]);
    pthread_t second = start("words-1", count_words, &readers[1]);
    run_for_argument(argc, argv);
    // The counters wrap; so does the comparison.
    bool right = static_cast<unsigned>(finish(first)) == static_cast<unsigned>(count_in(words[0]).load());
    right &= static_cast<unsigned>(finish(second)) == static_cast<unsigned>(count_in(words[1]).load());
    return verdict(right, same_line(&words[0], &words[1]) == SHARES_LINE);
}
