#!/bin/bash
# stress-ng's mutex stressor: threads that lock and unlock one mutex.
#
# Known by stress-mutex.c: all threads of an instance take the one global `mutex`; true sharing of its words, which the C
# library's pthread_mutex_lock and unlock change. No layout helps.
# It costs about a hundredth of the time: the rest are system calls.
#
# FIELD: {"language": "c", "apt": ["stress-ng"], "findings": [
#   {"kinds": ["true-sharing"], "names": [], "functions": ["pthread_mutex", "lll_lock", "libc.so"], "not_on": ["stack", "heap"], "missing": "partly",
#    "advice_never": ["_Alignas", "a new 64-byte line"]}],
#   "others": ["kernel", "stress-ng"]}
. "${0%/*}/stress.sh" --mutex 1 --mutex-procs 2
