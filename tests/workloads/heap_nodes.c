// 1024 nodes, allocated one by one, in each of which two threads count in fields of their own: every node's line is falsely
// shared, and none costs a thousandth of the time. Nothing but the type, or the line of the allocation, tells that they
// belong together.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap", "type": "struct node"}, "fields": [
//     {"field": ".left", "op": "rmw", "function": "count_left", "line": "@left", "thread": "left"},
//     {"field": ".right", "op": "rmw", "function": "count_right", "line": "@right", "thread": "right"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

enum { NODES = 1024 };

struct node {
    OWN_LINE unsigned long left;
    OWN_LINE unsigned long right;
};

static struct node *nodes[NODES];

static void *count_left(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    while (running())
        for (int i = 0; i < NODES; i++, n++)
            nodes[i]->left++; // @left
    return (void *)n;
}

static void *count_right(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    while (running())
        for (int i = 0; i < NODES; i++, n++)
            nodes[i]->right++; // @right
    return (void *)n;
}

int main(int argc, char **argv) {
    for (int i = 0; i < NODES; i++) {
        // On a line of its own, with something of changing length between it and the next.
        struct node *node = aligned_alloc(64, (sizeof *node + 63) / 64 * 64);
        if (node == NULL || malloc((size_t)(i * 37 % 199 + 1)) == NULL)
            return 3;
        *node = (struct node){0, 0};
        nodes[i] = node;
    }
    int together = same_line(&nodes[0]->left, &nodes[0]->right);
    pthread_t left = start("left", count_left, NULL);
    pthread_t right = start("right", count_right, NULL);
    run_for_argument(argc, argv);
    uintptr_t lefts = finish(left), rights = finish(right);
    for (int i = 0; i < NODES; i++) {
        lefts -= nodes[i]->left;
        rights -= nodes[i]->right;
    }
    return verdict(lefts == 0 && rights == 0, together == SHARES_LINE);
}
