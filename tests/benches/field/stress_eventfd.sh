#!/bin/bash
# stress-ng's eventfd stressor: two processes that pass a number to and fro by two eventfds.
#
# Known by fs/eventfd.c: writer and reader take the lock of one `struct eventfd_ctx` (`wqh.lock`) and change its `count`
# beside it: true sharing in the kernel's memory, as far as both run at the same time. The program itself shares
# nothing but its counter of operations, which one of them writes.
#
# FIELD: {"language": "c", "apt": ["stress-ng"], "findings": [], "others": ["kernel"]}
. "${0%/*}/stress.sh" --eventfd 1
