// Two goroutines, two fields of one struct on one line. The compiler moves the struct to the heap, as a goroutine that
// does not own its stack knows of it. It runs for the milliseconds in its first argument.
package main

import (
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

type stats struct {
	hits   int64
	misses int64
}

// keepOn keeps the goroutine on the nth of the CPUs that the process may use, and round from the first: left to the
// scheduler of a busy machine, both may stay on one, and then no line moves.
func keepOn(nth int) {
	runtime.LockOSThread()
	var allowed, one [128]uint64
	size := unsafe.Sizeof(allowed)
	if _, _, failed := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, size, uintptr(unsafe.Pointer(&allowed))); failed != 0 {
		os.Exit(3)
	}
	var cpus []int
	for cpu := 0; cpu < 64*len(allowed); cpu++ {
		if allowed[cpu/64]>>(cpu%64)&1 == 1 {
			cpus = append(cpus, cpu)
		}
	}
	cpu := cpus[nth%len(cpus)]
	one[cpu/64] = 1 << (cpu % 64)
	if _, _, failed := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, size, uintptr(unsafe.Pointer(&one))); failed != 0 {
		os.Exit(3)
	}
}

func countHits(s *stats) {
	keepOn(0)
	for {
		atomic.AddInt64(&s.hits, 1)
	}
}

func countMisses(s *stats) {
	keepOn(1)
	for {
		s.misses++
	}
}

func main() {
	ms, err := strconv.Atoi(os.Args[1])
	if err != nil {
		os.Exit(3)
	}
	shared := &stats{}
	go countHits(shared)
	go countMisses(shared)
	time.Sleep(time.Duration(ms) * time.Millisecond)
	os.Exit(0)
}
