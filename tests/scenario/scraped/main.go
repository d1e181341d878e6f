// SPDX-License-Identifier: Apache-2.0

// A program that is scraped: net/http/pprof, and work of a known size on request. Each of the
// functions below is looked for by its name in the profiles. POST /work answers with what it has
// done, as it has measured it: bytes and objects allocated, nanoseconds waited.
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"sync"
	"time"
)

const chunkBytes = 64 << 10

var kept [][]byte

//go:noinline
func growHeap(n int) {
	for i := 0; i < n; i++ {
		kept = append(kept, allocateChunk())
	}
}

//go:noinline
func allocateChunk() []byte {
	return make([]byte, chunkBytes)
}

// Holds a lock that another waits for; the profile says it of the one who unlocks.
func contendLock(hold time.Duration) time.Duration {
	var lock sync.Mutex
	waited := make(chan time.Duration)
	asked := make(chan struct{})
	lock.Lock()
	go func() {
		close(asked)
		start := time.Now()
		lock.Lock()
		waited <- time.Since(start)
		lock.Unlock()
	}()
	<-asked
	time.Sleep(hold)
	releaseLock(&lock)
	return <-waited
}

//go:noinline
func releaseLock(lock *sync.Mutex) {
	lock.Unlock()
}

func blockChannel(hold time.Duration) time.Duration {
	signal := make(chan struct{})
	ready := make(chan struct{})
	go func() {
		<-ready
		time.Sleep(hold)
		signal <- struct{}{}
	}()
	close(ready)
	return waitForSignal(signal)
}

//go:noinline
func waitForSignal(signal chan struct{}) time.Duration {
	start := time.Now()
	<-signal
	return time.Since(start)
}

func work(w http.ResponseWriter, r *http.Request) {
	const chunks = 256
	growHeap(chunks)
	lock := contendLock(400 * time.Millisecond)
	channel := blockChannel(500 * time.Millisecond)
	// What was allocated is in a profile after the collection that follows the next one.
	runtime.GC()
	runtime.GC()
	fmt.Fprintf(w, `{"objects": %d, "bytes": %d, "lock_ns": %d, "channel_ns": %d}`+"\n",
		chunks, chunks*chunkBytes, lock.Nanoseconds(), channel.Nanoseconds())
}

func main() {
	runtime.MemProfileRate = 1
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	http.HandleFunc("/work", work)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "listens at", listener.Addr())
	http.Serve(listener, nil)
}
