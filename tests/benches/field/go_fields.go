// Two goroutines count in two fields of one struct on Go's heap.
//
// Known by the source: `hits` and `misses` are 8 bytes apart, each written by one goroutine and read by nobody else.
//
// FIELD: {"language": "go", "apt": ["golang-go"], "findings": [
//   {"kinds": ["false-sharing"], "names": ["hits", "misses"], "all_names": true, "not_on": ["stack"],
//    "advice_says": ["_ [", "CacheLinePad"], "advice_never": ["struct {"]}]}
package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

type stats struct {
	hits   int64
	misses int64
}

var shared *stats

func countHits(s *stats) {
	for {
		atomic.AddInt64(&s.hits, 1)
	}
}

func countMisses(s *stats) {
	for {
		s.misses++
	}
}

func main() {
	shared = &stats{}
	go countHits(shared)
	go countMisses(shared)
	time.Sleep(300 * time.Millisecond)
	fmt.Println("ready", os.Getpid())
	time.Sleep(2 * time.Minute)
}
