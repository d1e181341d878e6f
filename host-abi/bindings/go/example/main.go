// SPDX-License-Identifier: Apache-2.0

// example SECONDS PREFIX: a program that profiles itself while it works, and has each second's
// pprof in PREFIX.1.pb.gz, PREFIX.2.pb.gz, …; `go tool pprof` takes them together.
//
//	CGO_ENABLED=0 go build -o example ./example
//	sudo ./example 5 itself && go tool pprof -top itself.*.pb.gz
//
// ANDIRON_LIBRARY, ANDIRON_PLUGINS and ANDIRON_WORKER say where the parts are if they are not
// installed.
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

const configuration = `pyroscope.ebpf "self" {
  targets          = [{"__process_pid__" = "%d", "service_name" = "example"}]
  targets_only     = true
  collect_interval = "1s"
  forward_to       = [embed.profiles.files.receiver]
}
embed.profiles "files" {}
`

func main() {
	seconds, err := 0.0, fmt.Errorf("two arguments")
	if len(os.Args) == 3 {
		seconds, err = strconv.ParseFloat(os.Args[1], 64)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "usage: example SECONDS PREFIX")
		os.Exit(2)
	}
	if err := profiled(os.Args[2], func() { fmt.Println(work(seconds)) }); err != nil {
		fmt.Fprintln(os.Stderr, "no profile:", err)
		os.Exit(1)
	}
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

// Without a profile the work is done all the same.
func profiled(prefix string, work func()) error {
	a, err := begin(prefix)
	work()
	if err != nil {
		return err
	}
	defer a.Close()
	return a.Stop(10 * time.Second)
}

func begin(prefix string) (*andiron.Agent, error) {
	a, err := andiron.Open(andiron.Options{
		Library:    os.Getenv("ANDIRON_LIBRARY"),
		PluginDirs: filepath.SplitList(os.Getenv("ANDIRON_PLUGINS")),
		Worker:     os.Getenv("ANDIRON_WORKER"),
	})
	if err != nil {
		return nil, err
	}
	n := 0
	err = a.OnProfiles("files", func(p andiron.Profile) error {
		n++
		return os.WriteFile(fmt.Sprintf("%s.%d.pb.gz", prefix, n), p.Data, 0o644)
	})
	if err == nil {
		_, err = a.Load("example", fmt.Sprintf(configuration, os.Getpid()))
	}
	if err == nil {
		err = a.Start()
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}
