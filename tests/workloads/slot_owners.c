// Two slots of a shared mapping, each counted up by a worker process that lives 30 ms; a new worker takes over the slot of
// the one that ended. No slot ever has two owners at once: the slots are falsely shared, not the owners' counts truly.
//
// ANSWER: {"variant": "plain", "processes": 4, "unconfirmed_because": "each process ends while its window is open",
//   "findings": [
//   {"kind": "false-sharing", "object": {"kind": "mapping", "type": "struct slots"}, "fields": [
//     {"field": ".count[].value", "offset": 0, "op": "rmw", "function": "work", "line": "@count"},
//     {"field": ".count[].value", "offset": 8, "op": "rmw", "function": "work", "line": "@count"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct slot {
    OWN_LINE unsigned long value;
};

struct slots {
    struct slot count[2];
};

static struct slots *slots;

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__((noinline)) static void work(int slot) {
    for (long end = now_ms() + 30; now_ms() < end;)
        for (int n = 0; n < 20000; n++)
            __atomic_fetch_add(&slots->count[slot].value, 1, __ATOMIC_RELAXED); // @count
}

static pid_t hire(int slot) {
    pid_t pid = fork();
    if (pid == 0) {
        work(slot);
        _exit(0);
    }
    return pid;
}

int main(int argc, char **argv) {
    slots = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    long end = now_ms() + argument_ms(argc, argv);
    pid_t owner[2] = {hire(0), hire(1)};
    int right = slots != MAP_FAILED;
    while (now_ms() < end) {
        pid_t ended = wait(NULL);
        for (int slot = 0; slot < 2; slot++)
            if (owner[slot] == ended)
                owner[slot] = hire(slot);
    }
    while (wait(NULL) > 0) {
    }
    right &= slots->count[0].value > 0 && slots->count[1].value > 0;
    return verdict(right, same_line(&slots->count[0], &slots->count[1]) == SHARES_LINE);
}
