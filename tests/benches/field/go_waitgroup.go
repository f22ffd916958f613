// Two goroutines add to and take from one sync.WaitGroup.
//
// Known by the source of sync.WaitGroup: counter and waiters are one word, which each Add and Done changes by an atomic
// addition. Padding gives nothing.
//
// FIELD: {"language": "go", "apt": ["golang-go"], "findings": [
//   {"kinds": ["true-sharing"], "names": ["state1", "WaitGroup", "pending"], "functions": ["sync.(*WaitGroup)", "main."],
//    "not_on": ["stack"], "advice_never": ["CacheLinePad", "64-byte line"]}]}
package main

import (
	"fmt"
	"os"
	"sync"
	"time"
)

var pending sync.WaitGroup

func work() {
	for {
		pending.Add(1)
		pending.Done()
	}
}

func main() {
	go work()
	go work()
	time.Sleep(300 * time.Millisecond)
	fmt.Println("ready", os.Getpid())
	time.Sleep(2 * time.Minute)
}
