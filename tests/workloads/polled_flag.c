// One thread polls for news that another stores: each load is followed by a store, but by somebody else's. No pair.
// Apart, the news are stored on a line that nobody polls, and the line that is polled never changes.
//
// ANSWER: {"variant": "plain", "observer": "windows", "findings": [
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "news", "type": "struct news"}, "fields": [
//     {"field": "news.polled", "op": "load", "function": "poll", "line": "@poll", "thread": "poll"},
//     {"field": "news.polled", "op": "store", "function": "post", "line": "@post", "thread": "post"}]}],
//   "pairs": [], "no_pair": ["@poll"]}
// ANSWER: {"variant": "padded", "observer": "windows", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct news {
    OWN_LINE unsigned long polled;
    OWN_LINE unsigned long archived;
};

struct news news __attribute__((aligned(64)));

#ifdef PADDED
#define POSTED news.archived
#else
#define POSTED news.polled
#endif

static unsigned long last_seen;

static void *poll(void *unused) {
    (void)unused;
    unsigned long seen = 0;
    uintptr_t changes = 0;
    while (running()) {
        unsigned long now = __atomic_load_n(&news.polled, __ATOMIC_ACQUIRE); // @poll
        changes += now != seen;
        seen = now;
    }
    last_seen = seen;
    return (void *)changes;
}

static void *post(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    while (running())
        __atomic_store_n(&POSTED, ++n, __ATOMIC_RELEASE); // @post
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t polling = start("poll", poll, NULL);
    pthread_t posting = start("post", post, NULL);
    run_for_argument(argc, argv);
    unsigned long changes = finish(polling);
    unsigned long posted = finish(posting);
    int right = posted > 0 && POSTED == posted && changes <= posted && last_seen <= posted;
    right &= SHARES_LINE ? changes > 0 : changes == 0;
    return verdict(right, same_line(&news.polled, &POSTED) == SHARES_LINE);
}
