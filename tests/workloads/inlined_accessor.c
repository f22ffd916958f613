// Accessors that -O3 inlines into the thread functions: the access belongs to the accessor's line, in a function
// that is called something else.
//
// ANSWER: {"variant": "plain", "flags": ["-O3"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "session", "type": "struct session"}, "fields": [
//     {"field": "session.reads", "op": "rmw", "function": "serve_reads", "inlined": "session_note_read", "line": "@read"},
//     {"field": "session.writes", "op": "rmw", "function": "serve_writes", "inlined": "session_note_write", "line": "@write"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-O3", "-DPADDED"], "findings": []}

#define _GNU_SOURCE
#include "stage/stage.h"

struct session {
    OWN_LINE unsigned long reads;
    OWN_LINE unsigned long writes;
};

struct session session __attribute__((aligned(64)));

static inline void session_note_read(struct session *s) {
    s->reads++; // @read
}

static inline void session_note_write(struct session *s) {
    s->writes++; // @write
}

static void *serve_reads(void *argument) {
    uintptr_t n = 0;
    for (; running(); n++)
        session_note_read(argument);
    return (void *)n;
}

static void *serve_writes(void *argument) {
    uintptr_t n = 0;
    for (; running(); n++)
        session_note_write(argument);
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t reads = start("reads", serve_reads, &session);
    pthread_t writes = start("writes", serve_writes, &session);
    run_for_argument(argc, argv);
    int right = finish(reads) == session.reads;
    right &= finish(writes) == session.writes;
    return verdict(right, same_line(&session.reads, &session.writes) == SHARES_LINE);
}
