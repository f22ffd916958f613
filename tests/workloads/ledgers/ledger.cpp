// Accounts with locks: four threads move money between them, each account's lock and its balance on lines of their own.
//
// For load hints that a compiler places by its plugin. Expected candidates: the load in `Lock::take`, which is the standard
// library's line, inlined into `Account::change`; and the balance. Not the fees, which all threads read and one changes now
// and then. Prints one line with a checksum that does not depend on the order, and returns 0 exactly when it is right.
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int THREADS = 4, OWN = 16, ACCOUNTS = THREADS * OWN, KINDS = 8;

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
alignas(128) pthread_barrier_t all;

uint64_t next(uint64_t &state) {
    // Steele, Lea, Flood 2014: SplitMix64.
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// In each round a thread has a quarter of the accounts to itself, in the next one that of its neighbour: how often a line
// changes hands does not depend on who is fast.
void work(int thread, int rounds) {
    uint64_t state = 17 + thread;
    for (int round = 0; round < rounds; round++) {
        auto *own = &accounts[(thread + round) % THREADS * OWN];
        int64_t fee = fees[round % KINDS].load(std::memory_order_relaxed);
        if (thread == 0 && round % 16 == 15)
            fees[round / 16 % KINDS].store(fee, std::memory_order_relaxed);
        for (int n = 0; n < OWN; n++) {
            uint64_t random = next(state);
            int64_t amount = static_cast<int64_t>(random >> 8 & 255) + fee;
            own[n].change(-amount);
            own[random >> 16 & (OWN - 1)].change(amount);
        }
        pthread_barrier_wait(&all);
    }
}

} // namespace

int main(int argc, char **argv) {
    int rounds = argc > 1 && !std::strcmp(argv[1], "ref") ? 240 : 80;
    pthread_barrier_init(&all, nullptr, THREADS);
    for (auto &fee : fees)
        fee = 1;
    std::vector<std::thread> others;
    for (int thread = 1; thread < THREADS; thread++)
        others.emplace_back(work, thread, rounds);
    work(0, rounds);
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
    bool right = sum == 1000 * ACCOUNTS && changes == 2ull * ACCOUNTS * rounds;
    std::printf("ledger: %s %016llx\n", right ? "right" : "WRONG", static_cast<unsigned long long>(checksum));
    return !right;
}
