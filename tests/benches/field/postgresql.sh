#!/bin/bash
# PostgreSQL with four clients that only select, each answered by a process of its own.
#
# Known by PostgreSQL's source: all backends pin the same index pages (BufferDesc.state, bufmgr.c) and take the same
# lightweight locks in shared mode (LWLock.state, lwlock.c), of the buffer mapping and of ProcArrayLock: atomic words in
# the segment that they all map, truly shared, on lines of their own. At the end of each transaction a backend stores to
# its own element of OldestMemberMXactId (multixact.c), 4 bytes from the next one's: false sharing. On two CPUs that is
# little: a client and its backend take turns.
#
# FIELD: {"language": "c", "apt": ["postgresql"], "seconds": 6, "findings": [
#   {"kinds": ["true-sharing", "mixed-sharing"], "names": [], "functions": ["LWLock", "PinBuffer", "LockBuffer", "GetSnapshotData"],
#    "not_on": ["stack", "heap"], "advice_never": ["_Alignas"], "missing": "right"}],
#   "others": ["kernel", "mapping"]}
cd "$FIELD_STATE" || exit 1
chown postgres . && chmod 755 .
programs=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
as() { runuser -u postgres -- "$@"; }
as "$programs/initdb" -A trust -D data > log 2>&1 || exit 1
as "$programs/postgres" -D data -p 7394 -k "$PWD" -c listen_addresses= -c fsync=off >> log 2>&1 &
server=$!
trap 'kill $load; kill -INT $server; wait' EXIT
trap exit TERM
until as "$programs/pg_isready" -q -p 7394 -h "$PWD"; do sleep 0.1; done
as "$programs/pgbench" -i -q -s 5 -p 7394 -h "$PWD" postgres >> log 2>&1 || exit 1
as timeout --foreground 120 "$programs/pgbench" -S -n -M prepared -c 4 -j 1 -T 120 -p 7394 -h "$PWD" postgres >> log 2>&1 &
load=$!
sleep 2
echo "ready $(head -1 data/postmaster.pid)"
wait $load
