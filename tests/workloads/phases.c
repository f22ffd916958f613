// Two threads count in two fields of one line, but never at the same time: 500 ms one, 500 ms the other, with a
// barrier between. The line moves twice a second, which is nothing.
//
// ANSWER: {"variant": "plain", "findings": [], "insignificant": ["report"]}

#define _GNU_SOURCE
#include "stage/stage.h"

#define PHASE_MS 500

struct report {
    unsigned long parsed;
    unsigned long printed;
};

struct report report __attribute__((aligned(64)));

// Conducted by main; on lines of its own, and stored twice a second.
static struct {
    int phase;
    int over;
    pthread_barrier_t turn;
    char own_lines[64];
} conductor __attribute__((aligned(128)));

static int in_phase(int parity) { return __atomic_load_n(&conductor.phase, __ATOMIC_RELAXED) % 2 == parity; }

static void *parse(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    while (pthread_barrier_wait(&conductor.turn), !conductor.over)
        for (; in_phase(0); n++)
            report.parsed++; // @parse
    return (void *)n;
}

static void *print(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    while (pthread_barrier_wait(&conductor.turn), !conductor.over)
        for (; in_phase(1); n++)
            report.printed++; // @print
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_barrier_init(&conductor.turn, NULL, 3);
    pthread_t parser = start("parse", parse, NULL);
    pthread_t printer = start("print", print, NULL);
    for (long left_ms = argument_ms(argc, argv); left_ms > 0; left_ms -= PHASE_MS) {
        pthread_barrier_wait(&conductor.turn);
        sleep_ms(left_ms < PHASE_MS ? left_ms : PHASE_MS);
        __atomic_fetch_add(&conductor.phase, 1, __ATOMIC_RELAXED);
    }
    conductor.over = 1;
    pthread_barrier_wait(&conductor.turn);
    int right = finish(parser) == report.parsed;
    right &= finish(printer) == report.printed;
    return verdict(right && report.parsed > 0, same_line(&report.parsed, &report.printed));
}
