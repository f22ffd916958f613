// Two ints of one aligned 8-byte word: one is counted, the other only read, through a pointer that is loaded each time.
// Optimised, `mov 4(%rax),%eax` reads over its own base, so that a trap on the word does not tell which half it was. With the
// pointer kept in its register, each trap tells its bytes. Where both use one half, the sharing is true, whatever is
// overwritten.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap", "type": "struct conf"}, "fields": [
//     {"field": ".ticks", "op": "rmw", "function": "count", "line": "@ticks", "thread": "count"},
//     {"field": ".limit", "op": "load", "function": "look", "line": "@limit", "thread": "look"}]}]}
// ANSWER: {"variant": "kept", "flags": ["-DKEPT"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap", "type": "struct conf"}, "fields": [
//     {"field": ".ticks", "op": "rmw", "function": "count", "line": "@ticks", "thread": "count"},
//     {"field": ".limit", "op": "load", "function": "look", "line": "@kept", "thread": "look"}]}]}
// ANSWER: {"variant": "common", "flags": ["-DCOMMON"], "findings": [
//   {"kind": "true-sharing", "object": {"kind": "heap", "type": "struct conf"}, "fields": [
//     {"field": ".ticks", "op": "rmw", "function": "count", "line": "@ticks", "thread": "count"},
//     {"field": ".ticks", "op": "load", "function": "look", "line": "@read", "thread": "look"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct conf {
    OWN_LINE int ticks;
    OWN_LINE int limit;
};

static struct {
    struct conf *volatile conf;
    char own_lines[120];
} table __attribute__((aligned(128)));

static void *count(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    for (; running(); n++)
        __atomic_fetch_add(&table.conf->ticks, 1, __ATOMIC_RELAXED); // @ticks
    return (void *)n;
}

// Returns whether it saw nothing but what there can be.
static void *look(void *unused) {
    (void)unused;
    uintptr_t right = 1;
#ifdef COMMON
    for (int most = 0; running();) {
        int now = __atomic_load_n(&table.conf->ticks, __ATOMIC_RELAXED); // @read
        right &= now >= most;
        most = now;
    }
#else
    uintptr_t sum = 0;
    while (running()) {
#ifdef KEPT
        struct conf *conf = table.conf;
        sum += (uintptr_t)__atomic_load_n(&conf->limit, __ATOMIC_RELAXED); // @kept
        __asm__ volatile("" : : "r"(conf));
#else
        sum += (uintptr_t)__atomic_load_n(&table.conf->limit, __ATOMIC_RELAXED); // @limit
#endif
    }
    right = sum % 7 == 0;
#endif
    return (void *)right;
}

int main(int argc, char **argv) {
    struct conf *conf = aligned_alloc(64, 128);
    if (conf == NULL)
        return 3;
    conf->ticks = 0;
    conf->limit = 7;
    table.conf = conf;
    pthread_t counter = start("count", count, NULL);
    pthread_t looker = start("look", look, NULL);
    run_for_argument(argc, argv);
    int right = (int)finish(counter) == conf->ticks;
    right &= finish(looker) == 1;
    return verdict(right, same_line(&conf->ticks, &conf->limit) == SHARES_LINE);
}
