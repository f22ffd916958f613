// A heap array with a counter for each thread. malloc aligns to 16 bytes, so two neighbours of 8 are always on
// one line.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap", "type": "struct jobs"}, "fields": [
//     {"field": ".done", "offset": 0, "op": "rmw", "function": "count_jobs", "line": "@job", "thread": "worker-0"},
//     {"field": ".done", "offset": 8, "op": "rmw", "function": "count_jobs", "line": "@job", "thread": "worker-1"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

#ifdef PADDED
struct jobs {
    unsigned long done;
    char own_line[120];
};
#else
struct jobs {
    unsigned long done;
};
#endif

static void *count_jobs(void *argument) {
    struct jobs *mine = argument;
    uintptr_t n = 0;
    for (; running(); n++)
        mine->done++; // @job
    return (void *)n;
}

int main(int argc, char **argv) {
    struct jobs *jobs = malloc(2 * sizeof(struct jobs));
    if (jobs == NULL)
        return 3;
    jobs[0].done = jobs[1].done = 0;
    pthread_t first = start("worker-0", count_jobs, &jobs[0]);
    pthread_t second = start("worker-1", count_jobs, &jobs[1]);
    run_for_argument(argc, argv);
    int right = finish(first) == jobs[0].done;
    right &= finish(second) == jobs[1].done;
    return verdict(right, same_line(&jobs[0].done, &jobs[1].done) == SHARES_LINE);
}
