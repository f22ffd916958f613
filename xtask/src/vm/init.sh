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

# From here on a guest that dies may have died of us.
run started true

# Whether to look again: too little was seen to tell (exit code 3). On one CPU that is the answer.
again() {
    [ "$code" = 3 ] && [ "$cpus" -gt 1 ]
}

# look NAME-OF-RECORD ARGUMENTS..: attaches up to three times, each for twice as long; the last one counts.
look() {
    record=$1
    shift
    for longer in 1 2 4; do
        run "$record" cohtrace attach $sampled --duration $((seconds * longer)) "$@"
        again || break
    done
}

# replay SESSION NAME-OF-RECORD NAME-OF-REPORT ARGUMENTS..: records and reports, likewise.
replay() {
    session=$1 recording=$2 report=$3
    shift 3
    for longer in 1 2 4; do
        rm -rf "$session"
        run "$recording" cohtrace record -q $rate --no-watch --duration $((seconds * longer)) -o "$session" "$@"
        run "$report" cohtrace report --json --threshold 0 --check "$session"
        again || break
    done
}

# freed NAME PID: what the kernel holds, once it has let go of what its owners closed: it does that after a grace period.
freed() {
    for wait in 1 2 3 4 5 6 7 8 9 10; do
        run "$1" left "$2"
        grep -q '"programs": 0, "maps": 0, "links": 0' /tmp/out && break
        sleep 1
    done
}

cd /w
cpus=$(nproc)
# The tool takes its own time from the only CPU.
seconds=2
[ "$cpus" = 1 ] && seconds=6
# At the usual 1,000 a second, a guest on a busy machine would do nothing but take samples.
rate="-F 250"
sampled="-q $rate --json --no-watch --threshold 0 --check"
run started cat /proc/uptime
run release uname -r
run doctor cohtrace doctor --json
# Its threads wait for each other, and where a host has fewer CPUs than the guest, for their turns.
run measure cohtrace measure -q --json --pairs all --states own-l1,other-modified,shared-by-three --seconds 20

look attach -- ./two_counters 600000
run padded cohtrace attach $sampled --duration $seconds -- ./two_counters_padded 600000

replay /tmp/run.coh record report -- ./two_counters 600000

look heap --heap -- ./calloc_slots 600000

./two_counters 600000 &
target=$!
replay /tmp/all.coh all all-report -a
kill $target
wait

# Again where the emulator missed all hits.
for attempt in 1 2 3; do
    run watch cohtrace attach -q $rate --json --watch counters.hits --duration 3 -- ./two_counters 600000
    grep -q '"hits": 0,' /tmp/out || break
done

./calloc_slots 600000 &
target=$!
freed before $target
cohtrace record -q $rate --heap -o /tmp/killed.coh -p $target &
recorder=$!
waited=0
while [ $waited -lt 40 ] && ! ls /tmp/killed.coh/accesses/*.parquet >/dev/null 2>&1; do
    sleep 1
    waited=$((waited + 1))
done
run during left $target
kill -9 $recorder
wait $recorder
freed after $target
run target kill -0 $target
run killed-report cohtrace report --json --threshold 0 /tmp/killed.coh
kill $target
wait

run kernel-log dmesg
run ended cat /proc/uptime
poweroff -f
