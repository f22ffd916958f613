#!/bin/bash
# stress-ng's eventfd stressor: two processes that pass a number to and fro by two eventfds.
#
# Known by fs/eventfd.c: writer and reader take the lock of one `struct eventfd_ctx` (`wqh.lock`) and change its `count`
# beside it: true sharing in the kernel's memory, as far as both run at the same time. The program itself shares
# nothing but its counter of operations, which one of them writes.
#
# FIELD: {"language": "c", "apt": ["stress-ng"], "findings": [], "others": ["kernel"]}
exec 3>&1
stress-ng --eventfd 1 --timeout 120 > /dev/null 2>&1 &
server=$!
trap 'kill $server; wait' EXIT
trap exit TERM
sleep 1
echo "ready $server" >&3
wait $server
