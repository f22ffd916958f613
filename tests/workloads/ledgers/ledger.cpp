// Accounts with locks: four threads move money between them, each account's lock and its balance on lines of their own.
//
// For load hints that a compiler places by its plugin. Expected candidates: the load in `Lock::take`, which is the standard
// library's line, inlined into `Account::change`; and the balance. Not the fees, which all threads read and one changes now
// and then. Prints one line with a checksum that does not depend on the order, and returns 0 exactly when it is right.
#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int THREADS = 4, ACCOUNTS = 64, KINDS = 8;

class Lock {
  public:
    void take() {
        while (held.load(std::memory_order_relaxed) || held.exchange(1, std::memory_order_acquire))
            sched_yield();
    }
    void release() { held.store(0, std::memory_order_release); }

  private:
    std::atomic<uint32_t> held{0};
};

template <class Amount> class Account {
  public:
    void change(Amount by) {
        lock.take();
        before = balance;
        balance = before + by;
        entries = entries + 1;
        lock.release();
    }
    Amount has() const { return balance; }
    uint64_t changes() const { return entries; }

  private:
    alignas(128) Lock lock;
    alignas(128) Amount balance = 1000;
    uint64_t entries = 0;
    Amount before = 0;
};

alignas(128) std::array<Account<int64_t>, ACCOUNTS> accounts;
alignas(128) std::array<std::atomic<int64_t>, KINDS> fees;

uint64_t next(uint64_t &state) {
    // Steele, Lea, Flood 2014: SplitMix64.
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

void work(int thread, int transfers) {
    uint64_t state = 17 + thread;
    for (int n = 0; n < transfers; n++) {
        uint64_t random = next(state);
        int64_t fee = fees[random % KINDS].load(std::memory_order_relaxed);
        if (thread == 0 && n % 256 == 255)
            fees[n / 256 % KINDS].store(fee, std::memory_order_relaxed);
        int64_t amount = static_cast<int64_t>(random >> 8 & 255) + fee;
        accounts[random >> 16 & (ACCOUNTS - 1)].change(-amount);
        accounts[random >> 24 & (ACCOUNTS - 1)].change(amount);
        // Four threads on fewer processors take turns by it, about as four processors would.
        sched_yield();
    }
}

} // namespace

int main(int argc, char **argv) {
    int transfers = argc > 1 && !std::strcmp(argv[1], "ref") ? 3000 : 1000;
    for (auto &fee : fees)
        fee = 1;
    std::vector<std::thread> others;
    for (int thread = 1; thread < THREADS; thread++)
        others.emplace_back(work, thread, transfers);
    work(0, transfers);
    for (auto &other : others)
        other.join();
    int64_t sum = 0;
    uint64_t changes = 0, checksum = 0;
    for (auto &account : accounts) {
        sum += account.has();
        changes += account.changes();
        checksum ^= static_cast<uint64_t>(account.has());
        checksum = next(checksum);
    }
    bool right = sum == 1000 * ACCOUNTS && changes == 2ull * THREADS * transfers;
    std::printf("ledger: %s %016llx\n", right ? "right" : "WRONG", static_cast<unsigned long long>(checksum));
    return !right;
}
