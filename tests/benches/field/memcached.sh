#!/bin/bash
# memcached with two worker threads, whose clients ask for the same few keys, many at a time.
#
# Known by memcached's source (items.c, thread.c, proto_text.c): for each key both workers take the same item lock
# (`item_locks`) and change the same item's reference count: true sharing of locks and items. Here that is little: nine
# tenths of the time are the kernel's, in sockets. Statistics and their locks are kept per thread.
#
# FIELD: {"language": "c", "apt": ["libevent-dev", "dpkg-dev", "python3"],
#   "source": {"package": "memcached", "build": "./configure CFLAGS='-O2 -g' && make memcached"}, "findings": [
#   {"kinds": ["true-sharing"], "names": ["refcount", "_stritem", "item_lock", "pthread_mutex_t", "*it"],
#    "functions": ["item_get", "do_item_get", "refcount_incr", "item_trylock", "pthread_mutex"], "advice_never": ["_Alignas"], "missing": "right"}],
#   "others": ["kernel", "lru", "heap", "mapping", "stats"]}
cd "$FIELD_STATE" || exit 1
"$FIELD_SOURCE/tree/memcached" -u root -p 7393 -U 0 -l 127.0.0.1 -t 2 &
server=$!
trap 'kill $load $server; wait' EXIT
trap exit TERM
timeout --foreground 120 python3 - <<'LOAD' &
import socket, threading, time

KEYS = [b"one", b"two", b"three"]


def connect():
    while True:
        try:
            return socket.create_connection(("127.0.0.1", 7393))
        except OSError:
            time.sleep(0.1)


def ask():
    connection = connect()
    for key in KEYS:
        connection.sendall(b"set " + key + b" 0 0 2 noreply\r\nhi\r\n")
    asked = b"".join(b"get " + key + b"\r\n" for key in KEYS) * 400
    answer = b"".join(b"VALUE " + key + b" 0 2\r\nhi\r\nEND\r\n" for key in KEYS) * 400
    buffer = bytearray(len(answer))
    while True:
        connection.sendall(asked)
        connection.recv_into(buffer, len(answer), socket.MSG_WAITALL)


for _ in range(4):
    threading.Thread(target=ask, daemon=True).start()
time.sleep(120)
LOAD
load=$!
sleep 2
echo "ready $server"
wait $load
