#!/bin/bash
# stress-ng's cacheline stressor: processes that count in their own bytes of one line of a shared mapping.
#
# Known by stress-cacheline.c, method `inc`: parent and child of each of two instances increment the byte of their own,
# with a fence behind each, and read no other's. False sharing between processes, in memory that they mapped shared
# before the fork. Debian's binary is stripped.
#
# FIELD: {"language": "c", "apt": ["stress-ng"], "findings": [
#   {"kinds": ["false-sharing"], "names": [], "functions": ["stress-ng"], "not_on": ["stack", "heap"]}],
#   "others": ["kernel"]}
. "${0%/*}/stress.sh" --cacheline 2 --cacheline-method inc
