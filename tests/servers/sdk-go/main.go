// SPDX-License-Identifier: Apache-2.0

// sdk-go URL: a program that profiles itself with Pyroscope's Go client, and pushes a few times.
package main

import (
	"log"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/grafana/pyroscope-go"
)

var kept [][]byte

// work costs CPU, memory and a contended lock for that long.
func work(d time.Duration) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for time.Now().Before(end) {
				mu.Lock()
				kept = append(kept[:len(kept)%64], make([]byte, 16<<10))
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
}

func main() {
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: "sdk.go",
		ServerAddress:   os.Args[1],
		Tags:            map[string]string{"region": "eu", "odd": "a b/c"},
		UploadRate:      time.Second,
		ProfileTypes: []pyroscope.ProfileType{
			pyroscope.ProfileCPU, pyroscope.ProfileInuseSpace, pyroscope.ProfileAllocSpace,
			pyroscope.ProfileGoroutines, pyroscope.ProfileMutexCount,
			pyroscope.ProfileMutexDuration, pyroscope.ProfileBlockCount,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	work(3 * time.Second)
	if err := profiler.Stop(); err != nil {
		log.Fatal(err)
	}
}
