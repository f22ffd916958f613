#!/bin/bash
# Redis as it is by default: one thread answers all clients.
#
# Known by redis' documentation and by networking.c: with `io-threads 1` no other thread touches what the main thread
# does; the background threads (bio.c) sleep. What CPUs exchange is the kernel's: sockets with the load's process.
#
# FIELD: {"language": "c", "apt": ["redis-server", "redis-tools"], "findings": [], "others": ["kernel"]}
cd "$FIELD_STATE" || exit 1
redis-server --port 7391 --save '' --appendonly no > log &
server=$!
trap 'kill $load $server; wait' EXIT
trap exit TERM
until redis-cli -p 7391 ping > /dev/null 2>&1; do sleep 0.1; done
timeout --foreground 120 redis-benchmark -p 7391 -t set,get -n 100000000 -c 50 -P 16 -r 10000 -q > /dev/null &
load=$!
sleep 1
echo "ready $server"
wait $load
