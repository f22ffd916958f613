// What an ownership prefetch before a load changes, when a store to the same line follows: by the state of the line
// elsewhere, by what follows the load, and by whether the lines are loaded in a chain or independently of each other.
//
// Usage: ownership ROUNDS LINES. Prints, for each case and round, a line: state, operation, order, and TSC cycles per line
// without and with prefetch. Two threads on CPUs of their own: `there` brings the lines into a state, `here` is timed. All
// cases are measured in each round, without and with prefetch one right after the other, the first of them in turn.
// Where no store follows, the time that `there` then takes to read the lines again is added: a needless prefetch costs others.
//
// Exit code 3: there are no two CPUs, or this is no machine with PREFETCHW.
#define _GNU_SOURCE
#include <cpuid.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

// Apart by two pairs of lines, so that no neighbour is fetched along.
#define STRIDE 256

struct node {
    struct node *next;
    uint64_t value;
    char unused[STRIDE - 16];
};

enum state { DIRTY, CLEAN, SHARED, PRIVATE, STATES };
static const char *const state_names[] = {"dirty-elsewhere", "clean-elsewhere", "shared", "private"};
enum operation { STORE, FENCED, CAS, LOAD, OPERATIONS };
static const char *const operation_names[] = {"load-store", "load-store-fence", "load-cas", "load-only"};
static const char *const order_names[] = {"chained", "independent"};

static struct node *nodes;
static struct node **order;
static uint64_t lines;
static _Atomic int asked, done; // `there` does what is asked, and says when it has.
static int there_cpu, here_cpu;
static uint64_t there_took;

enum { NOTHING, WRITE_ALL, READ_ALL, STOP };

static void read_all(void) {
    for (uint64_t n = 0; n < lines; n++)
        (void)*(volatile uint64_t *)&order[n]->value;
}

static void write_all(void) {
    for (uint64_t n = 0; n < lines; n++)
        *(volatile uint64_t *)&order[n]->value = n;
}

static void stay_on(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        exit(3);
}

static void *there(void *unused) {
    (void)unused;
    stay_on(there_cpu);
    for (;;) {
        int what;
        while ((what = atomic_load(&asked)) == NOTHING)
            _mm_pause();
        if (what == STOP)
            return 0;
        unsigned unused_cpu;
        uint64_t before = __rdtscp(&unused_cpu);
        _mm_lfence();
        what == WRITE_ALL ? write_all() : read_all();
        _mm_mfence();
        there_took = __rdtscp(&unused_cpu) - before;
        atomic_store(&asked, NOTHING);
        atomic_store(&done, 1);
    }
}

static void ask(int what) {
    atomic_store(&done, 0);
    atomic_store(&asked, what);
    while (!atomic_load(&done))
        _mm_pause();
}

static void out_of_all_caches(void) {
    for (uint64_t n = 0; n < lines; n++)
        _mm_clflush(order[n]);
    _mm_mfence();
}

static void bring_into(enum state state) {
    out_of_all_caches();
    switch (state) {
    case DIRTY:
        ask(WRITE_ALL);
        break;
    case CLEAN:
        ask(READ_ALL);
        break;
    case SHARED:
        ask(READ_ALL);
        read_all();
        break;
    default:
        write_all();
    }
    _mm_mfence();
}

// A function for each operation, order and form, so that nothing is decided between the lines.
#define VISIT(operation, prefetch)                                                                                     \
    do {                                                                                                               \
        if (prefetch)                                                                                                  \
            __asm__ volatile("prefetchw %0" ::"m"(node->value));                                                       \
        uint64_t value;                                                                                                \
        __asm__ volatile("movq %1, %0" : "=r"(value) : "m"(node->value));                                              \
        if (operation == CAS)                                                                                          \
            __atomic_compare_exchange_n(&node->value, &value, value + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
        else if (operation != LOAD)                                                                                    \
            __asm__ volatile("movq %1, %0" : "=m"(node->value) : "r"(value + 1));                                      \
        if (operation == FENCED)                                                                                       \
            _mm_mfence();                                                                                              \
    } while (0)

#define WALKS(name, operation, prefetch)                                                                               \
    static void name##_chained(void) {                                                                                 \
        struct node *node = order[0];                                                                                  \
        for (uint64_t n = 0; n < lines; n++) {                                                                         \
            VISIT(operation, prefetch);                                                                                \
            node = *(struct node *volatile *)&node->next;                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_independent(void) {                                                                             \
        for (uint64_t n = 0; n < lines; n++) {                                                                         \
            struct node *node = order[n];                                                                              \
            VISIT(operation, prefetch);                                                                                \
        }                                                                                                              \
    }

WALKS(store, STORE, 0)
WALKS(store_prefetch, STORE, 1)
WALKS(fenced, FENCED, 0)
WALKS(fenced_prefetch, FENCED, 1)
WALKS(cas, CAS, 0)
WALKS(cas_prefetch, CAS, 1)
WALKS(load, LOAD, 0)
WALKS(load_prefetch, LOAD, 1)

static void (*const walks[OPERATIONS][2][2])(void) = {
    {{store_chained, store_prefetch_chained}, {store_independent, store_prefetch_independent}},
    {{fenced_chained, fenced_prefetch_chained}, {fenced_independent, fenced_prefetch_independent}},
    {{cas_chained, cas_prefetch_chained}, {cas_independent, cas_prefetch_independent}},
    {{load_chained, load_prefetch_chained}, {load_independent, load_prefetch_independent}},
};

static double cycles(enum state state, enum operation operation, void (*walk)(void)) {
    bring_into(state);
    unsigned unused;
    uint64_t before = __rdtscp(&unused);
    _mm_lfence();
    walk();
    _mm_mfence();
    uint64_t took = __rdtscp(&unused) - before;
    if (operation == LOAD) {
        ask(READ_ALL);
        took += there_took;
    }
    return (double)took / (double)lines;
}

static void find_cpus(void) {
    cpu_set_t allowed;
    unsigned a, b, c, d;
    if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) < 2 ||
        !__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c & 1 << 8))
        exit(3);
    while (!CPU_ISSET(here_cpu, &allowed))
        here_cpu++;
    for (there_cpu = here_cpu + 1; !CPU_ISSET(there_cpu, &allowed);)
        there_cpu++;
}

int main(int argc, char **argv) {
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 100;
    lines = argc > 2 ? strtoull(argv[2], NULL, 10) : 128;
    if (argc > 3 || rounds == 0 || lines == 0 || lines > 1 << 20)
        return 2;
    find_cpus();
    nodes = aligned_alloc(4096, (lines * sizeof *nodes + 4095) / 4096 * 4096);
    order = malloc(lines * sizeof *order);
    if (!nodes || !order)
        return 4;
    memset(nodes, 0, lines * sizeof *nodes);
    uint64_t x = 88172645463325252u;
    for (uint64_t n = 0; n < lines; n++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        uint64_t place = x % (n + 1);
        order[n] = order[place];
        order[place] = &nodes[n];
    }
    for (uint64_t n = 0; n < lines; n++)
        order[n]->next = order[(n + 1) % lines];
    pthread_t thread;
    if (pthread_create(&thread, NULL, there, NULL))
        return 4;
    stay_on(here_cpu);
    for (uint64_t round = 0; round < rounds; round++)
        for (int state = 0; state < STATES; state++)
            for (int operation = 0; operation < OPERATIONS; operation++)
                for (int independent = 0; independent < 2; independent++) {
                    double took[2];
                    for (int turn = 0; turn < 2; turn++) {
                        int prefetch = (turn + round) % 2;
                        took[prefetch] = cycles(state, operation, walks[operation][independent][prefetch]);
                    }
                    printf("%s %s %s %.1f %.1f\n", state_names[state], operation_names[operation],
                           order_names[independent], took[0], took[1]);
                }
    atomic_store(&asked, STOP);
    pthread_join(thread, NULL);
    return 0;
}
