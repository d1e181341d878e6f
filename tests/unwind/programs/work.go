// SPDX-License-Identifier: Apache-2.0

// Go: goroutines, growing stacks, maps, sorting, garbage, panics; for so many CPU seconds.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

//go:noinline
func dive(depth int, room [16]int, end func() int) int {
	if depth == 0 {
		return end()
	}
	room[depth&15] = depth
	return dive(depth-1, room, end) + room[depth&15]
}

func words() int {
	names := map[string]int{}
	for i := 0; i < 2000; i++ {
		names["name-"+strconv.Itoa(i%97)] += i
	}
	keys := make([]string, 0, len(names))
	for k := range names {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return len(strings.Join(keys, ","))
}

func caught() (n int) {
	defer func() { n = len(fmt.Sprint(recover())) }()
	return dive(20, [16]int{}, func() int { panic("to the top") })
}

// burning says whether the process has used less CPU time than that.
func burning(seconds float64) bool {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) < seconds*1e9
}

func work(seconds float64) {
	for burning(seconds) {
		dive(40, [16]int{}, words)
		caught()
		var group sync.WaitGroup
		for i := 0; i < 4; i++ {
			group.Add(1)
			go func() { defer group.Done(); dive(90, [16]int{}, words) }()
		}
		group.Wait()
	}
}

func main() {
	runtime.GOMAXPROCS(2)
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	go work(seconds)
	work(seconds)
}
