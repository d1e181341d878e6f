// SPDX-License-Identifier: Apache-2.0

// itself SECONDS URL: a program whose own profile is in Pyroscope while it runs, and no other
// program's.
//
//	CGO_ENABLED=0 go build -o itself ./itself
//	./itself 60 http://localhost:4040
//
// It needs no privilege, only a kernel that lets a process sample itself
// (kernel.perf_event_paranoid 2 or less). Where it does not, Start says so, and the program does
// its work without a profile. LIBRARY, PLUGIN_DIRS and WORKER say where the parts are if they are
// not installed.
package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	andiron "andiron/host-abi/bindings/go"
)

const configuration = `profile.self "program" {
  labels     = {"service_name" = "itself-go"}
  forward_to = [pyroscope.write.server.receiver]
}
pyroscope.write "server" {
  endpoint {
    url = %q
  }
}
`

func profileItself(url string) (*andiron.Agent, error) {
	a, err := andiron.Open(andiron.Options{
		Library:    os.Getenv("LIBRARY"),
		PluginDirs: filepath.SplitList(os.Getenv("PLUGIN_DIRS")),
		Worker:     os.Getenv("WORKER"),
	})
	if err != nil {
		return nil, err
	}
	if _, err = a.Load("itself", fmt.Sprintf(configuration, url)); err == nil {
		err = a.Start()
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// What the program is for.
//
//go:noinline
func work(seconds float64) (sum float64) {
	for end := time.Now().Add(time.Duration(seconds * 1e9)); time.Now().Before(end); {
		for i := 1.0; i < 1e5; i++ {
			sum += math.Sqrt(i)
		}
	}
	return sum
}

func main() {
	seconds, err := 0.0, fmt.Errorf("two arguments")
	if len(os.Args) == 3 {
		seconds, err = strconv.ParseFloat(os.Args[1], 64)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "usage: itself SECONDS URL")
		os.Exit(2)
	}
	a, err := profileItself(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "no profile:", err)
	}
	fmt.Println(work(seconds))
	if err == nil {
		a.Stop(10 * time.Second) // what is not sent yet, is now
		a.Close()
	}
}
