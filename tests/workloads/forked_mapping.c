// A parent and its child each count in a word of shared memory that they map at different addresses: one line.
//
// ANSWER: {"variant": "plain", "processes": 2, "findings": [
//   {"kind": "false-sharing", "object": {"kind": "mapping", "type": "struct board"}, "fields": [
//     {"field": ".by_parent", "offset": 0, "op": "rmw", "function": "count_as_parent", "line": "@parent"},
//     {"field": ".by_child", "offset": 8, "op": "rmw", "function": "count_as_child", "line": "@child"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "processes": 2, "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct board {
    OWN_LINE unsigned long by_parent;
    OWN_LINE unsigned long by_child;
    // Where the child sees the board, and what it counted: told once, on lines of their own.
    struct board *child_view __attribute__((aligned(128)));
    unsigned long child_count;
};

static struct board *map(int fd) {
    void *board = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return board == MAP_FAILED ? NULL : board;
}

__attribute__((noinline)) static unsigned long count_as_parent(struct board *board) {
    unsigned long n = 0;
    for (; running(); n++)
        board->by_parent++; // @parent
    return n;
}

__attribute__((noinline)) static unsigned long count_as_child(struct board *board) {
    unsigned long n = 0;
    for (; running(); n++)
        board->by_child++; // @child
    return n;
}

static void *watch_clock(void *argument) {
    sleep_ms((long)argument);
    __atomic_store_n(&curtain.down, 1, __ATOMIC_RELAXED);
    return NULL;
}

int main(int argc, char **argv) {
    int fd = memfd_create("board", 0);
    if (fd < 0 || ftruncate(fd, sizeof(struct board)) != 0)
        return 3;
    struct board *board = map(fd);
    pid_t child = fork();
    if (child < 0 || board == NULL)
        return 3;
    pthread_t clock = start("clock", watch_clock, (void *)argument_ms(argc, argv));
    turns_taken = child == 0; // One process on each CPU.
    take_turn(pthread_self());
    if (child == 0) {
        struct board *second = map(fd); // The first is still mapped, so this one is elsewhere.
        if (second == NULL)
            return 3;
        munmap(board, sizeof(struct board));
        second->child_count = count_as_child(second);
        second->child_view = second;
        return finish(clock) != 0;
    }
    int right = count_as_parent(board) == board->by_parent;
    right &= finish(clock) == 0;
    int status = -1;
    right &= waitpid(child, &status, 0) == child && status == 0;
    right &= board->child_count == board->by_child;
    return verdict(right, board->child_view != board && same_line(&board->by_parent, &board->by_child) == SHARES_LINE);
}
