// A list of free nodes: its head moves by compare-and-swap to the node behind, and to a node given back.
//
// ROLES: {"head": "list-head", "taken": "counter"}
// NEVER: lock ticket-lock index

#define _GNU_SOURCE
#include "../stage/stage.h"

enum { NODES = 8 };

struct node {
    struct node *next;
    char own_line[120];
};

struct pool {
    struct node *head;
    unsigned long taken;
};

struct pool pool __attribute__((aligned(64)));
static struct node nodes[2][NODES] __attribute__((aligned(128)));

static struct node *pop(void) {
    struct node *first = __atomic_load_n(&pool.head, __ATOMIC_ACQUIRE);
    while (first != NULL) {
        struct node *next = __atomic_load_n(&first->next, __ATOMIC_RELAXED);
        if (__atomic_compare_exchange_n(&pool.head, &first, next, 1, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
            break;
    }
    return first;
}

static void push(struct node *node) {
    struct node *first = __atomic_load_n(&pool.head, __ATOMIC_RELAXED);
    do {
        __atomic_store_n(&node->next, first, __ATOMIC_RELAXED);
    } while (!__atomic_compare_exchange_n(&pool.head, &first, node, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

// A node that was taken and came back while another thread looked at it puts the list out of order. That does no harm here:
// nothing relies on it but that each thread finds some node or none.
static void *use(void *argument) {
    struct node *own = argument;
    uintptr_t n = 0;
    for (unsigned long turn = 0; running(); turn++) {
        struct node *node = pop();
        push(node != NULL ? node : &own[turn % NODES]);
        __atomic_fetch_add(&pool.taken, 1, __ATOMIC_RELAXED);
        n++;
    }
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t first = start("first", use, nodes[0]);
    pthread_t second = start("second", use, nodes[1]);
    run_for_argument(argc, argv);
    unsigned long all = finish(first);
    all += finish(second);
    return verdict(all == pool.taken, same_line(&pool.head, &pool.taken));
}
