#!/bin/bash
# Redis with one more thread for reading and writing.
#
# Known by redis pull request 10892 and by networking.c of 7.0: the main thread stores the number of clients in
# `io_threads_pending[1]` and polls it to zero, the other polls it to non-zero and stores zero. Both sides use one word:
# true sharing of a hand-over flag, with a line of its own since that pull request. A lock or padding gives nothing.
#
# FIELD: {"language": "c", "apt": ["redis-server", "redis-tools"], "findings": [
#   {"kinds": ["true-sharing"], "names": ["io_threads_pending"], "functions": ["IOThreadMain"],
#    "advice_never": ["_Alignas", "64-byte line"]}],
#   "others": ["kernel", "server", "heap"]}
cd "$FIELD_STATE" || exit 1
redis-server --port 7392 --save '' --appendonly no --io-threads 2 --io-threads-do-reads yes > log &
server=$!
trap 'kill $load $server; wait' EXIT
trap exit TERM
until redis-cli -p 7392 ping > /dev/null 2>&1; do sleep 0.1; done
timeout --foreground 120 redis-benchmark -p 7392 -t set,get -n 100000000 -c 50 -P 16 -r 10000 -q > /dev/null &
load=$!
sleep 1
echo "ready $server"
wait $load
