// A parallel radix sort: each thread counts the digits of its keys, a tree of prefixes over the threads makes ranks of
// the counts, and each thread moves its keys to where their ranks say.
//
// Counterpart: RADIX of SPLASH-2, with its radix of 1024 and the paper's numbers of keys. Two arrays of keys take turns:
// what a thread reads in one pass as its part of the one, threads store into in the next, to places all over it. Keys have
// 30 bits, not 19: the third pass stores into what the second has read. With two passes only lines that were evicted
// between would show it, and the count has no evictions.
//
// Expected candidates: the load of a key when digits are counted, for that line is stored into by the pass after (the
// paper's line 519 of radix.C, followed by the store of its line 641); the locks of the barriers.
#include "kernel.h"

#define DIGIT_BITS 10
#define BUCKETS (1 << DIGIT_BITS)
#define KEY_BITS 30

static uint32_t *key[2];
static size_t keys;
// Counts of each thread, and of the two pairs of threads; where each digit begins.
static uint32_t (*rank)[BUCKETS], (*pair_rank)[BUCKETS], *start;
static uint64_t sum_before[THREADS];

static uint64_t mixed(uint32_t value) {
    uint64_t state = value;
    return next_random(&state);
}

OUT_OF_LINE static void count_digits(const uint32_t *from, size_t first, size_t end, int shift, uint32_t *counts) {
    memset(counts, 0, BUCKETS * sizeof *counts);
    for (size_t n = first; n < end; n++)
        counts[from[n] >> shift & (BUCKETS - 1)]++;
}

OUT_OF_LINE static void move_keys(const uint32_t *from, uint32_t *to, size_t first, size_t end, int shift,
                                  uint32_t *places) {
    for (size_t n = first; n < end; n++) {
        uint32_t value = from[n];
        to[places[value >> shift & (BUCKETS - 1)]++] = value;
    }
}

static void *sort(void *argument) {
    int thread = (int)(intptr_t)argument;
    size_t first = keys * thread / THREADS, end = keys * (thread + 1) / THREADS;
    // As there, each thread makes its own keys.
    uint64_t state = 5 + thread;
    for (size_t n = first; n < end; n++) {
        key[0][n] = next_random(&state) & ((1 << KEY_BITS) - 1);
        sum_before[thread] += mixed(key[0][n]);
    }
    wait_for_all();
    uint32_t places[BUCKETS];
    for (int pass = 0; pass * DIGIT_BITS < KEY_BITS; pass++) {
        const uint32_t *from = key[pass % 2];
        int shift = pass * DIGIT_BITS;
        count_digits(from, first, end, shift, rank[thread]);
        wait_for_all();
        if (thread % 2 == 0)
            for (int digit = 0; digit < BUCKETS; digit++)
                pair_rank[thread / 2][digit] = rank[thread][digit] + rank[thread + 1][digit];
        wait_for_all();
        if (thread == 0) {
            uint32_t sum = 0;
            for (int digit = 0; digit < BUCKETS; digit++) {
                start[digit] = sum;
                sum += pair_rank[0][digit] + pair_rank[1][digit];
            }
        }
        wait_for_all();
        for (int digit = 0; digit < BUCKETS; digit++)
            places[digit] = start[digit] + (thread >= 2 ? pair_rank[0][digit] : 0) +
                            (thread % 2 ? rank[thread - 1][digit] : 0);
        int skipped = SABOTAGED && thread == 1 && pass == 1;
        move_keys(from, key[!(pass % 2)], first + skipped, end, shift, places);
        wait_for_all();
    }
    return 0;
}

int main(int argc, char **argv) {
    keys = is_ref(argc, argv) ? 262144 : 16384;
    key[0] = lines(keys * sizeof *key[0]);
    key[1] = lines(keys * sizeof *key[1]);
    rank = lines(THREADS * sizeof *rank);
    pair_rank = lines(THREADS / 2 * sizeof *pair_rank);
    start = lines(BUCKETS * sizeof *start);
    run_threads(sort);
    const uint32_t *sorted = key[(KEY_BITS + DIGIT_BITS - 1) / DIGIT_BITS % 2];
    uint64_t before = 0, after = 0, checksum = 0;
    for (int thread = 0; thread < THREADS; thread++)
        before += sum_before[thread];
    int right = 1;
    for (size_t n = 0; n < keys; n++) {
        after += mixed(sorted[n]);
        checksum = with(checksum, sorted[n]);
        right &= n == 0 || sorted[n - 1] <= sorted[n];
    }
    return answer("radix_sort", right && before == after, checksum);
}
