// SPDX-License-Identifier: Apache-2.0

// Go that calls C that calls Go: the walk goes from a goroutine's stack to a thread's and back.
package main

/*
#cgo CFLAGS: -O2 -fomit-frame-pointer
extern int goWork(int);
static __attribute__((noinline, unused)) int c_work(int rounds, int depth)
{
	volatile unsigned long x = 1;

	if (depth > 0)
		return c_work(rounds, depth - 1) + 1;
	for (int i = 0; i < rounds; i++)
		x = x * 6364136223846793005UL + 1;
	return goWork((int)x) + 1;
}
*/
import "C"

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
)

var result int

//export goWork
func goWork(x C.int) C.int {
	for i := 0; i < 100000; i++ {
		result += i * int(x)
	}
	return x
}

//go:noinline
func through(depth int) int {
	if depth == 0 {
		return int(C.c_work(50000, 6))
	}
	return through(depth-1) + 1
}

func burning(seconds float64) bool {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) < seconds*1e9
}

func main() {
	runtime.GOMAXPROCS(1)
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	for burning(seconds) {
		through(10)
	}
}
