// A spin lock, the balance it guards and an unrelated statistic on one line. Two threads hand the lock and the
// balance to each other (true sharing), a third counts visits beside them (false sharing): mixed.
// Apart, the lock's line and the balance's line stay truly shared, and padding is no cure for that.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "mixed-sharing", "object": {"kind": "global", "name": "account", "type": "struct account"}, "fields": [
//     {"field": "account.lock", "op": "rmw", "function": "transfer", "line": "@take"},
//     {"field": "account.lock", "op": "store", "function": "transfer", "line": "@release"},
//     {"field": "account.balance", "op": "rmw", "function": "transfer", "line": "@balance"},
//     {"field": "account.visits", "op": "rmw", "function": "count_visits", "line": "@visit", "thread": "visits"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": [
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "account", "type": "struct account"}, "fields": [
//     {"field": "account.lock", "op": "rmw", "function": "transfer", "line": "@take"},
//     {"field": "account.lock", "op": "store", "function": "transfer", "line": "@release"}]},
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "account", "type": "struct account"}, "fields": [
//     {"field": "account.balance", "op": "rmw", "function": "transfer", "line": "@balance"}]}]}

#define _GNU_SOURCE
#include "stage/stage.h"

struct account {
    OWN_LINE int lock;
    OWN_LINE long balance;
    OWN_LINE unsigned long visits;
};

struct account account __attribute__((aligned(64)));

enum { PARTS = 16 };

static void *transfer(void *argument) {
    long amount = (long)argument;
    uintptr_t n = 0;
    while (running()) {
        int open = 0;
        if (!__atomic_compare_exchange_n(&account.lock, &open, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) { // @take
            relax();
            continue;
        }
        for (int part = 0; part < PARTS; part++) {
            account.balance += amount; // @balance
            __asm__ volatile("" ::: "memory"); // Each addition reaches memory.
        }
        __atomic_store_n(&account.lock, 0, __ATOMIC_RELEASE); // @release
        n++;
    }
    return (void *)n;
}

static void *count_visits(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++)
        account.visits++; // @visit
    return (void *)n;
}

int main(int argc, char **argv) {
    // On two CPUs the third thread takes turns with the first, and the other two meet all the time.
    pthread_t deposit = start("deposit", transfer, (void *)3L);
    pthread_t withdraw = start("withdraw", transfer, (void *)-2L);
    pthread_t visits = start("visits", count_visits, NULL);
    run_for_argument(argc, argv);
    long deposits = (long)finish(deposit);
    long withdrawals = (long)finish(withdraw);
    int right = finish(visits) == account.visits;
    right &= account.balance == PARTS * (3 * deposits - 2 * withdrawals);
    int apart = !same_line(&account.lock, &account.balance) && !same_line(&account.lock, &account.visits);
    int together = same_line(&account.lock, &account.balance) && same_line(&account.lock, &account.visits);
    return verdict(right, SHARES_LINE ? together : apart);
}
