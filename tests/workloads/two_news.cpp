// Two objects by `new` in functions of their own, neighbours in memory.
//
// ANSWER: {"variant": "plain", "observer": "allocations", "tool_arguments": ["--heap"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap"}, "fields": [
//     {"offset": 0, "op": "rmw", "function": "send", "line": "@sent", "thread": "send"},
//     {"offset": 32, "op": "rmw", "function": "receive", "line": "@received", "thread": "receive"}]}]}
// ANSWER: {"variant": "padded", "tool_arguments": ["--heap"], "flags": ["-DPADDED"], "findings": []}

#include "stage/stage.h"
#include <atomic>

#ifdef PADDED
#define APART alignas(64)
#else
#define APART
#endif

struct APART sender {
    std::atomic<unsigned long> sent{0};
};

struct APART receiver {
    std::atomic<unsigned long> received{0};
};

static void *send(void *argument) {
    auto &self = *static_cast<sender *>(argument);
    uintptr_t n = 0;
    for (; running(); n++)
        self.sent.fetch_add(1, std::memory_order_relaxed); // @sent
    return reinterpret_cast<void *>(n);
}

static void *receive(void *argument) {
    auto &self = *static_cast<receiver *>(argument);
    uintptr_t n = 0;
    // Not what the other does, else a compiler may fold the two functions into one.
    for (; running(); n += 2)
        self.received.fetch_add(2, std::memory_order_relaxed); // @received
    return reinterpret_cast<void *>(n);
}

OUT_OF_LINE static sender *make_sender() {
    return new sender; // @sender
}

OUT_OF_LINE static receiver *make_receiver() {
    return new receiver; // @receiver
}

int main(int argc, char **argv) {
    // Blocks 32 bytes apart, until the next one starts in the first half of a line: the one after is on the same.
    uintptr_t before = 0, last;
    do {
        last = before;
        before = reinterpret_cast<uintptr_t>(malloc(8));
        // Else a compiler may leave the allocations out.
        __asm__ volatile("" : "+r"(before));
    } while (before != last + 32 || before % 64 < 32);
    sender *one = make_sender();
    receiver *other = make_receiver();
    pthread_t first = start("send", send, one);
    pthread_t second = start("receive", receive, other);
    run_for_argument(argc, argv);
    bool right = finish(first) == one->sent.load();
    right &= finish(second) == other->received.load();
    return verdict(right, same_line(one, other) == SHARES_LINE);
}
