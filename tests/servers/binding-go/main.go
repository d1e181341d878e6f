// SPDX-License-Identifier: Apache-2.0

// binding-go: host-abi/bindings/go, with real samples of a real program. Speaks TAP.
//
// TEST_LIBRARY, TEST_PLUGINS: libandiron.so and the folders of plugins
// ANDIRON: the command, which parses files and reports profiles
// WORKLOAD: a program whose function workload_70 takes most of its time
// EXAMPLE: the binding's example
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	andiron "andiron/host-abi/bindings/go"
)

const (
	rounds  = 36
	silent  = `discovery.process "all" {}`
	sampled = `pyroscope.ebpf "e" {
  forward_to       = [embed.profiles.mine.receiver]
  targets_only     = true
  targets          = [{"__process_pid__" = "%d"}, {"__process_pid__" = "%d"}]
  sample_rate      = 499
  collect_interval = "1s"
}
embed.profiles "mine" {}
`
	pushed = `pyroscope.ebpf "e" {
  forward_to       = [embed.profiles.bad.receiver, embed.profiles.columns.receiver]
  targets_only     = true
  targets          = [{"__process_pid__" = "%d", "service_name" = "pushed", "color" = "red"}]
  sample_rate      = 499
  collect_interval = "1s"
}
embed.profiles "columns" {}
embed.profiles "bad" {}
`
	listed = `embed.targets "list" {
  targets = [{"__address__" = "a", "color" = "red"}%s]
}
`
)

// What a test fails with; ends it.
type failure string

func expect(ok bool, format string, arguments ...any) {
	if !ok {
		panic(failure(fmt.Sprintf(format, arguments...)))
	}
}

func expectNil(err error) { expect(err == nil, "%v", err) }

func must[T any](value T, err error) T {
	expectNil(err)
	return value
}

// Of a call: that it was refused by that number, in these words.
func expectRefused(err error, number syscall.Errno, words ...string) {
	expect(errors.Is(err, number), "%v is not refused as %q", err, number.Error())
	var refused *andiron.Error
	expect(errors.As(err, &refused), "%T", err)
	for _, word := range words {
		expect(strings.Contains(err.Error(), word), "no %q in %v", word, err)
	}
}

func until(what string, condition func() bool) {
	end := time.Now().Add(time.Minute)
	for poll := time.NewTicker(20 * time.Millisecond); !condition(); <-poll.C {
		expect(time.Now().Before(end), "%s did not happen within a minute", what)
	}
}

func options() andiron.Options {
	return andiron.Options{
		Library:    os.Getenv("TEST_LIBRARY"),
		PluginDirs: filepath.SplitList(os.Getenv("TEST_PLUGINS")),
		Worker:     os.Getenv("ANDIRON"),
		Report:     func(err error) { panic(err) },
	}
}

func open(o andiron.Options) *andiron.Agent { return must(andiron.Open(o)) }

// Descriptors, and threads of andiron's; all threads are also Go's, who makes more when it likes. One
// that it makes in a callback has its parent's name, but blocks no signals.
func own() (descriptors, ofAndiron, threads int) {
	descriptors = len(must(os.ReadDir("/proc/self/fd")))
	for _, task := range must(os.ReadDir("/proc/self/task")) {
		status, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
		threads++
		if bytes.HasPrefix(status, []byte("Name:\tandiron")) &&
			!bytes.Contains(status, []byte("SigBlk:\t0000000000000000")) {
			ofAndiron++
		}
	}
	return
}

// Runs it, and expects that nothing of andiron is left.
func leavesNothing(function func()) {
	before, _, threads := own()
	function()
	runtime.GC()
	var descriptors, ofAndiron, all int
	defer func() { // of a failure: what was left
		if descriptors > before || ofAndiron > 0 || all >= threads+rounds/2 {
			fmt.Printf("# descriptors %d of %d, threads %d of %d, %d of andiron\n",
				descriptors, before, all, threads, ofAndiron)
		}
	}()
	until("that descriptors and threads are gone", func() bool {
		descriptors, ofAndiron, all = own()
		return descriptors <= before && ofAndiron == 0 && all < threads+rounds/2
	})
}

// A goroutine beside, again and again, until the function that it gives is called.
func beside(function func()) (end func()) {
	var stop atomic.Bool
	var done sync.WaitGroup
	done.Go(func() {
		for !stop.Load() {
			function()
		}
	})
	return func() {
		stop.Store(true)
		done.Wait()
	}
}

type writer struct {
	Delivered uint64
	Dropped   map[string]uint64
}

type ledger struct {
	Taken   uint64
	Writers map[string]writer
}

func ledgerOf(a *andiron.Agent) (l ledger) {
	expectNil(json.Unmarshal([]byte(must(a.Ledger())), &l))
	return l
}

// The function with the most samples of its own in a pprof, by `andiron report`.
func hottest(data []byte) string {
	expectNil(os.WriteFile("p.pb.gz", data, 0o600))
	out := must(exec.Command(os.Getenv("ANDIRON"), "report", "--json", "p.pb.gz").Output())
	var report struct {
		BySelf []struct{ Function string } `json:"by_self"`
	}
	expectNil(json.Unmarshal(out, &report))
	expect(len(report.BySelf) > 0, "no functions in %s", out)
	return report.BySelf[0].Function
}

//go:noinline
func goWork() {
	x := 1.0
	for i := range 2_000_000 {
		x += 1 / (x + float64(i))
	}
	if x < 0 {
		panic("impossible")
	}
}

// --- The tests ---

// Two profiles: the first panics, and is dropped. Meanwhile Go samples itself (SIGPROF), collects
// garbage and preempts (SIGURG).
func samples() {
	worker := exec.Command(os.Getenv("WORKLOAD"), "60")
	expectNil(worker.Start())
	defer worker.Wait()
	defer worker.Process.Kill()
	expectNil(pprof.StartCPUProfile(io.Discard))
	defer pprof.StopCPUProfile()
	defer beside(goWork)()
	defer beside(runtime.GC)()
	leavesNothing(func() { sample(worker.Process.Pid) })
}

func sample(pid int) {
	var a *andiron.Agent
	var lock sync.Mutex
	var profiles []andiron.Profile
	var faults []error
	var reports []error
	o := options()
	o.Report = func(err error) {
		lock.Lock()
		defer lock.Unlock()
		reports = append(reports, err)
		panic("a report that panics")
	}
	ready := make(chan struct{})
	a = open(o)
	defer a.Close()
	expectNil(a.OnProfiles("mine", func(p andiron.Profile) error {
		<-ready
		_, err := a.Load("", silent)
		read, readErr := a.Metrics()
		runtime.GC()
		lock.Lock()
		defer lock.Unlock()
		faults = append(faults, a.Close(), a.Stop(time.Second), err)
		if readErr != nil || !strings.Contains(read, "andiron_") {
			reports = append(reports, readErr)
		}
		profiles = append(profiles, p)
		switch len(profiles) {
		case 1:
			panic("the first")
		case 2:
			return io.ErrShortWrite
		}
		return nil
	}))
	must(a.Load("sampled", fmt.Sprintf(sampled, pid, os.Getpid())))
	expectNil(a.Start())
	close(ready)
	until("a third profile", func() bool {
		lock.Lock()
		defer lock.Unlock()
		return len(profiles) > 2
	})
	expectNil(a.Stop(10 * time.Second))
	for _, err := range faults {
		expectRefused(err, syscall.EDEADLK, "callback")
	}
	var stopped *andiron.Panic
	expect(len(reports) == 2, "%v", reports)
	expect(errors.As(reports[0], &stopped) && stopped.Value == "the first" &&
		bytes.Contains(stopped.Stack, []byte("main.sample")), "%v", reports[0])
	expect(reports[1] == io.ErrShortWrite, "%v", reports[1])
	l := ledgerOf(a)
	mine, delivered := l.Writers["embed.profiles.mine"], uint64(0)
	for _, p := range profiles[2:] {
		delivered += p.Samples
		expect(p.Name == "mine" && p.Start.Before(p.End), "%v", p)
	}
	refused := profiles[0].Samples + profiles[1].Samples
	expect(mine.Delivered == delivered && delivered > 0 &&
		mine.Dropped["embed.profiles.mine:refused"] == refused && refused > 0 &&
		len(mine.Dropped) == 1 && l.Taken == delivered+refused, "%+v", l)
	data := profiles[len(profiles)-2].Data
	hot := hottest(data)
	expect(hot == "workload_70" || hot == "main.goWork", "%s", hot)
	shown := must(exec.Command(os.Getenv("ANDIRON"), "report", "p.pb.gz").Output())
	for _, function := range []string{"workload_70", "main.goWork"} {
		expect(bytes.Contains(shown, []byte(function)), "no %s in\n%s", function, shown)
	}
}

// What a batch says is kept by value; after the call there is nothing to be read.
type read struct {
	batch         *andiron.Batch
	samples, rows uint64
	names         map[string]bool
	labels        map[string]string
	seconds       float64
	name          string // of the last row's profile type
}

func readBatch(b *andiron.Batch) *read {
	r := &read{batch: b, samples: b.Samples, names: map[string]bool{}, labels: map[string]string{}}
	r.seconds = b.End.Sub(b.Start).Seconds()
	for i := range b.Count(andiron.Groups) {
		g := b.Group(i)
		for _, label := range b.AttributesOf(g.LabelStart, g.NLabels) {
			r.labels[b.String(label.Key)] = b.String(uint32(label.Value))
		}
		for n := range g.NRows {
			row := b.Row(g.RowStart + n)
			r.rows += row.Samples
			r.name = b.String(b.Type(row.Type).Name)
			for _, frame := range b.FramesOf(b.Stack(row.Stack)) {
				l := b.Location(frame)
				for k := range l.NLines {
					f := b.Function(b.Line(l.LineStart + k).Function)
					r.names[b.String(f.Name)] = true
				}
			}
		}
	}
	expect(b.Function(1<<31) == andiron.Function{} && b.String(1<<31) == "" &&
		b.AttributesOf(1<<31, 9) == nil && len(b.FramesOf(andiron.Stack{Length: 1<<32 - 1})) < 1<<24 &&
		b.Count(1<<20) == 0 && b.Data(andiron.Encoded{Offset: 1 << 60, Length: 8}) == nil, "out of bounds")
	return r
}

// Two consumers of the same batches, one of which panics.
func columns() {
	worker := exec.Command(os.Getenv("WORKLOAD"), "60")
	expectNil(worker.Start())
	defer worker.Wait()
	defer worker.Process.Kill()
	leavesNothing(func() { readColumns(worker.Process.Pid) })
}

func readColumns(pid int) {
	var lock sync.Mutex
	var batches []*read
	o := options()
	o.Report = func(error) {}
	a := open(o)
	defer a.Close()
	expectNil(a.OnBatches("columns", func(b *andiron.Batch) error {
		r := readBatch(b)
		lock.Lock()
		defer lock.Unlock()
		batches = append(batches, r)
		return nil
	}))
	expectNil(a.OnBatches("bad", func(b *andiron.Batch) error { panic("bad") }))
	expectRefused(a.OnBatches("columns", func(*andiron.Batch) error { return nil }), syscall.EEXIST)
	expectRefused(a.OnBatches("nil", nil), syscall.EINVAL)
	must(a.Load("pushed", fmt.Sprintf(pushed, pid)))
	expectNil(a.Start())
	until("two batches with samples", func() bool {
		lock.Lock()
		defer lock.Unlock()
		return len(batches) > 1 && batches[len(batches)-1].samples > 0
	})
	expectNil(a.Stop(10 * time.Second))
	var samples uint64
	for _, r := range batches {
		samples += r.samples
		expect(r.rows == r.samples && r.seconds > 0, "%+v", r)
		expect(r.batch.Count(andiron.Rows) == 0 && r.batch.String(1) == "", "it can still be read")
	}
	last := batches[len(batches)-1]
	expect(last.names["workload_70"] && last.name == "process_cpu", "%+v", last)
	expect(last.labels["color"] == "red" && last.labels["service_name"] == "pushed" &&
		last.labels["__process_executable_name"] == "workload", "%v", last.labels)
	l := ledgerOf(a)
	expect(l.Writers["embed.profiles.columns"].Delivered == samples && samples > 0 &&
		l.Writers["embed.profiles.bad"].Delivered == 0 &&
		l.Writers["embed.profiles.bad"].Dropped["embed.profiles.bad:refused"] == samples, "%+v", l)
}

// Targets that are known, one more, and gone again; a callback that panics ends nothing.
func targets() {
	var lock sync.Mutex
	held := map[uint64]string{}
	names := func() string {
		lock.Lock()
		defer lock.Unlock()
		var all []string
		for _, address := range held {
			all = append(all, address)
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	o := options()
	o.Report = func(error) {}
	a := open(o)
	defer a.Close()
	expectNil(a.OnTargets("list", func(t andiron.Targets) {
		lock.Lock()
		defer lock.Unlock()
		if t.Snapshot {
			clear(held)
		}
		for _, row := range t.Rows {
			held[row.Row] = row.Labels["__address__"] + row.Labels["color"]
		}
		for _, row := range t.Removed {
			delete(held, row)
		}
		if t.Name != "list" {
			held[0] = t.Name
		}
		panic("each time")
	}))
	expectRefused(a.OnTargets("nil", nil), syscall.EINVAL)
	must(a.Load("", fmt.Sprintf(listed, "")))
	expectNil(a.Start())
	until("that the target came", func() bool { return names() == "ared" })
	must(a.Load("", fmt.Sprintf(listed, `, {"__address__" = "b"}`)))
	until("that the second came", func() bool { return names() == "ared b" })
	must(a.Load("", fmt.Sprintf(listed, "")))
	until("that it is gone", func() bool { return names() == "ared" })
	expectNil(a.Close())
}

func example() {
	command := exec.Command(os.Getenv("EXAMPLE"), "1.5", "itself")
	command.Env = append(os.Environ(), "ANDIRON_LIBRARY="+os.Getenv("TEST_LIBRARY"),
		"ANDIRON_PLUGINS="+os.Getenv("TEST_PLUGINS"), "ANDIRON_WORKER="+os.Getenv("ANDIRON"))
	out, err := command.CombinedOutput()
	expect(err == nil, "%v: %s", err, out)
	hot := hottest(must(os.ReadFile("itself.1.pb.gz")))
	expect(hot == "main.work", "%s", hot)
}

func configurations() {
	a := open(options())
	defer a.Close()
	nobody := func(andiron.Profile) error { return nil }
	expectNil(a.OnProfiles("mine", nobody))
	expectRefused(a.OnProfiles("mine", nobody), syscall.EEXIST, "mine")
	expectRefused(a.OnProfiles("nil", nil), syscall.EINVAL)
	expectRefused(a.OnProfiles("zero\x00", nobody), syscall.EINVAL, "zero")
	expectRefused(a.Start(), syscall.EINVAL, "no configuration")
	_, err := a.Load("my.alloy", "pyroscope.ebpf \"e\" {\n sample_rat = 9 }")
	expectRefused(err, syscall.EINVAL, "my.alloy:2", `no argument "sample_rat"`)
	_, err = a.LoadFile("nowhere.alloy")
	expectRefused(err, syscall.ENOENT, "nowhere.alloy")
	must(a.Load("", silent))
	expectNil(a.Start())
	_, err = a.Load("", `discovery.proces "typo" {}`)
	expectRefused(err, syscall.EINVAL, "discovery.proces")
	expectRefused(a.OnProfiles("late", nobody), syscall.EBUSY)
	must(a.Load("", `embed.profiles "mine" {}`))
	for _, read := range []func() (string, error){a.Health, a.Ledger, a.Targets} {
		expect(json.Valid([]byte(must(read()))), "no JSON")
	}
	expectRefused(a.Stop(1), syscall.ETIMEDOUT, "deadline")
	expectNil(a.Close())
	expectNil(a.Close())
	_, err = a.Metrics()
	expectRefused(err, syscall.EBADF, "closed")
	_, err = andiron.Open(andiron.Options{Library: "./nowhere.so"})
	expectRefused(err, syscall.ENOENT, "nowhere.so", "Options.Library")
	_, err = andiron.Open(andiron.Options{Library: os.Getenv("TEST_LIBRARY"), PluginDirs: []string{"/a:b"}})
	expectRefused(err, syscall.EINVAL, "colon")
}

// The log is called by the agent's thread while Load, Start, Stop and Close wait for that, with no
// more than one goroutine allowed to run.
func oneRound() {
	var lines atomic.Int64
	o := options()
	o.LogLevel, o.Log = andiron.LevelDebug, func(andiron.Level, string, string) {
		lines.Add(1)
		runtime.Gosched()
	}
	a := open(o)
	must(a.Load("", silent))
	expectNil(a.Start())
	must(a.Load("", silent))
	expectNil(a.Stop(10 * time.Second))
	expectNil(a.Close())
	expect(lines.Load() > 0, "nothing was logged")
}

func manyRounds() {
	oneRound()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	leavesNothing(func() {
		for range rounds {
			oneRound()
		}
	})
}

func closing() {
	for range 10 {
		a := open(options())
		must(a.Load("", silent))
		expectNil(a.Start())
		var asking, done sync.WaitGroup
		var odd atomic.Value
		for range 4 {
			asking.Add(1)
			done.Go(func() {
				_, err := a.Metrics()
				for asking.Done(); err == nil; {
					_, err = a.Metrics()
				}
				if !errors.Is(err, syscall.EBADF) {
					odd.Store(err)
				}
			})
		}
		asking.Wait()
		expectNil(a.Close())
		done.Wait()
		expect(odd.Load() == nil, "%v", odd.Load())
	}
}

// --- TAP ---

func passes(test func()) (ok bool) {
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case failure:
			ok = false
			fmt.Printf("# %s\n", strings.ReplaceAll(string(fault), "\n", "\n# "))
		default:
			panic(fault)
		}
	}()
	test()
	return true
}

func main() {
	tests := []struct {
		promise string
		test    func()
		root    bool
	}{
		{"profiles of a program and of Go itself; callbacks may panic and fail", samples, true},
		{"batches come as columns, and cannot be read later", columns, true},
		{"targets come and go by callback", targets, false},
		{"the example profiles itself", example, true},
		{"a bad configuration is refused in the library's words", configurations, false},
		{"some dozens of agents leave no thread and no descriptor", manyRounds, false},
		{"a close waits for other goroutines' calls; they end or are refused", closing, false},
	}
	expectNil(os.Chdir(must(os.MkdirTemp("", "binding-go-"))))
	code := 0
	fmt.Printf("1..%d\n", len(tests))
	for i, t := range tests {
		if t.root && os.Geteuid() != 0 {
			fmt.Printf("ok %d - %s # SKIP needs root: run it by `sudo ./check`\n", i+1, t.promise)
		} else if passes(t.test) {
			fmt.Printf("ok %d - %s\n", i+1, t.promise)
		} else {
			fmt.Printf("not ok %d - %s\n", i+1, t.promise)
			code = 1
		}
	}
	folder := must(os.Getwd())
	expectNil(os.RemoveAll(folder))
	os.Exit(code)
}
