#!/bin/sh
# The guest's first process: runs cohtrace in the ways that are judged outside, and writes each command's exit code,
# output and errors to the second serial port. Between records, lines start with "@@ ".
export PATH=/bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
mount -t tracefs none /sys/kernel/tracing 2>/dev/null
stty -F /dev/ttyS1 raw
exec 3>/dev/ttyS1

# run NAME COMMAND..: ends the command after a minute, in order if it can.
run() {
    name=$1
    shift
    timeout -k 10 60 "$@" >/tmp/out 2>/tmp/err </dev/null
    code=$?
    {
        echo "@@ $name $code"
        cat /tmp/out
        printf '\n@@ errors\n'
        cat /tmp/err
        printf '\n@@ end\n'
    } >&3
}

cd /w
sampled="-q --json --no-watch --threshold 0 --check"
run started cat /proc/uptime
run release uname -r
run doctor cohtrace doctor --json

run attach cohtrace attach $sampled --duration 2 -- ./two_counters 60000
run padded cohtrace attach $sampled --duration 2 -- ./two_counters_padded 60000

run record cohtrace record -q --no-watch --duration 2 -o /tmp/run.coh -- ./two_counters 60000
run report cohtrace report --json --threshold 0 --check /tmp/run.coh

run heap cohtrace attach $sampled --heap --duration 2 -- ./calloc_slots 60000

./two_counters 60000 &
target=$!
run all cohtrace record -a -q --no-watch --duration 2 -o /tmp/all.coh
run all-report cohtrace report --json --threshold 0 --check /tmp/all.coh
kill $target
wait

run watch cohtrace attach -q --json --watch counters.hits --duration 3 -- ./two_counters 60000

./calloc_slots 60000 &
target=$!
run before left $target
cohtrace record -q --heap -o /tmp/killed.coh -p $target &
recorder=$!
waited=0
while [ $waited -lt 40 ] && ! ls /tmp/killed.coh/accesses/*.parquet >/dev/null 2>&1; do
    sleep 1
    waited=$((waited + 1))
done
run during left $target
kill -9 $recorder
wait $recorder
sleep 1
run after left $target
run target kill -0 $target
run killed-report cohtrace report --json --threshold 0 /tmp/killed.coh
kill $target
wait

run kernel-log dmesg
run ended cat /proc/uptime
poweroff -f
