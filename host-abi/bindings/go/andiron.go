// SPDX-License-Identifier: Apache-2.0

// Package andiron is continuous profiling from a Go program, by libandiron and without cgo.
//
// An Agent is a running configuration: andiron/embed.h as Go has it. Whatever a program does with
// one, the library never calls what is gone, and is never called once the agent is closed: a Close
// waits for the calls of other goroutines. What the library calls stays alive until Close.
//
// Callbacks are called by threads of andiron, on a goroutine that belongs to that thread. So an
// agent knows a call from its own callback that would wait for itself, and refuses it as EDEADLK.
// They must not call runtime.Goexit (testing.T.FailNow does), which Go forbids there.
package andiron

import (
	"errors"
	"fmt"
	"log"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Level is how much a line of the log matters.
type Level uint32

const (
	LevelError Level = iota
	LevelWarn
	LevelInfo
	LevelDebug
)

func (l Level) String() string {
	return [...]string{"error", "warn", "info", "debug"}[min(l, LevelDebug)]
}

// Options says how an Agent is to be. Whatever is zero means the default.
type Options struct {
	Library    string   // the path of libandiron.so.1; where the system's loader finds it
	PluginDirs []string // where they are installed
	Worker     string   // the `andiron` that parses files in a sandbox; the one installed
	NoWorker   bool     // none, and functions that only a file knows have no names
	QueueBytes uint64   // the bound of each consumer's queue
	Workers    uint32   // threads that compute or block

	// Log is called for each line from LogLevel on.
	Log      func(level Level, component, line string)
	LogLevel Level

	// Report is told what a consumer of profiles returned, and of a *Panic of any callback, on
	// the thread of that callback. Without it log.Print is.
	Report func(error)
}

// Panic is a panic in a callback, which it ended and nothing else.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("panic in a callback: %v\n%s", p.Value, p.Stack) }

// Profile is a finished profile of one interval.
type Profile struct {
	Name       string // of the consumer
	Data       []byte // pprof, gzip; the consumer's to keep
	Samples    uint64
	Start, End time.Time
}

// Agent is one instance of andiron. Any goroutine may use it.
type Agent struct {
	lib     *library
	pointer unsafe.Pointer
	report  func(error)
	keys    []uintptr // in callbacks

	lock    sync.Mutex
	changed sync.Cond
	calls   int
	closing bool
}

// What the number means that a callback gets.
type callback struct {
	agent   *Agent
	name    string // of the consumer
	take    func(Profile) error
	batch   func(*Batch) error
	targets func(Targets)
	log     func(Level, string, string)
}

var callbacks struct {
	sync.RWMutex
	by   map[uintptr]*callback
	last uintptr
}

func (a *Agent) register(c callback) uintptr {
	c.agent = a
	callbacks.Lock()
	defer callbacks.Unlock()
	if callbacks.by == nil {
		callbacks.by = map[uintptr]*callback{}
	}
	callbacks.last++
	callbacks.by[callbacks.last] = &c
	a.keys = append(a.keys, callbacks.last)
	return callbacks.last
}

func (a *Agent) unregister() {
	callbacks.Lock()
	defer callbacks.Unlock()
	for _, key := range a.keys {
		delete(callbacks.by, key)
	}
}

func callbackOf(key uintptr) *callback {
	callbacks.RLock()
	defer callbacks.RUnlock()
	return callbacks.by[key]
}

// Version is the version of the library.
func Version(path string) (string, error) {
	lib, err := libraryAt(path)
	if err != nil {
		return "", err
	}
	return goString(lib.version()), nil
}

// Open makes an agent, which Close ends. It reads no configuration yet.
func Open(o Options) (*Agent, error) {
	lib, err := libraryAt(o.Library)
	if err != nil {
		return nil, err
	}
	a := &Agent{lib: lib, report: o.Report}
	a.changed.L = &a.lock
	if a.report == nil {
		a.report = func(err error) { log.Print("andiron: ", err) }
	}
	how := cEmbed{logLevel: uint32(o.LogLevel), queueBytes: o.QueueBytes, workers: o.Workers}
	how.size = uint32(unsafe.Sizeof(how))
	if err := o.paths(&how); err != nil {
		return nil, err
	}
	if o.Log != nil {
		how.context, how.log = a.register(callback{log: o.Log}), opened.loggingFn
	}
	_, err = lib.call(func(text **byte) int32 { return lib.open(&how, &a.pointer, text) })
	if err != nil {
		a.unregister()
		return nil, err
	}
	return a, nil
}

func (o Options) paths(how *cEmbed) (err error) {
	var folders []string
	for _, folder := range o.PluginDirs {
		path, err := filepath.Abs(folder)
		if err != nil {
			return err
		}
		if strings.Contains(path, ":") {
			return &Error{syscall.EINVAL, "a folder of plugins has no colon in its path: " + path}
		}
		folders = append(folders, path)
	}
	if len(folders) > 0 {
		how.pluginDirs, err = cString(strings.Join(folders, ":"), "PluginDirs")
	}
	worker := o.Worker
	if err == nil && worker != "" && !o.NoWorker {
		worker, err = filepath.Abs(worker)
	}
	if err == nil && o.NoWorker {
		worker = ""
	}
	if err == nil && (worker != "" || o.NoWorker) {
		how.worker, err = cString(worker, "Worker")
	}
	return err
}

// Makes a call of an agent that stays open meanwhile.
func (a *Agent) call(function func(text **byte) int32) (string, error) {
	a.lock.Lock()
	if a.closing {
		a.lock.Unlock()
		return "", &Error{syscall.EBADF, "the agent is closed"}
	}
	a.calls++
	a.lock.Unlock()
	defer func() {
		a.lock.Lock()
		a.calls--
		a.changed.Broadcast()
		a.lock.Unlock()
	}()
	return a.lib.call(function)
}

// OnProfiles has take called for each profile that `embed.profiles "NAME"` gets, one call at a
// time. If it returns an error or panics, the profile is dropped, its samples are counted as
// refused, and Options.Report is told. Before Start.
func (a *Agent) OnProfiles(name string, take func(Profile) error) error {
	return a.consume(name, callback{take: take}, take == nil, func(raw *byte, key uintptr, text **byte) int32 {
		return a.lib.onProfiles(a.pointer, raw, formPprof, opened.profilesFn, key, text)
	})
}

// OnBatches is OnProfiles for profiles that are not encoded: all that was sampled in an interval,
// with the labels of every target. No copy is made.
func (a *Agent) OnBatches(name string, take func(*Batch) error) error {
	return a.consume(name, callback{batch: take}, take == nil, func(raw *byte, key uintptr, text **byte) int32 {
		return a.lib.onProfiles(a.pointer, raw, formBatch, opened.profilesFn, key, text)
	})
}

// OnTargets has take called for each change of what `embed.targets "NAME"` refers to. It must not
// block: the agent does nothing else meanwhile. Before Start.
func (a *Agent) OnTargets(name string, take func(Targets)) error {
	return a.consume(name, callback{name: name, targets: take}, take == nil, func(raw *byte, key uintptr, text **byte) int32 {
		return a.lib.onTargets(a.pointer, raw, opened.targetsFn, key, text)
	})
}

func (a *Agent) consume(name string, c callback, missing bool,
	register func(name *byte, key uintptr, text **byte) int32) error {
	raw, err := cString(name, "name")
	if err != nil {
		return err
	}
	if missing {
		return &Error{syscall.EINVAL, "no function"}
	}
	_, err = a.call(func(text **byte) int32 { return register(raw, a.register(c), text) })
	return err
}

// Load takes a configuration; of one that runs, changes to it, all or nothing. The name stands
// before findings. What it gives are warnings.
func (a *Agent) Load(name, config string) (string, error) {
	raw, err := cString(name, "name")
	if err != nil {
		return "", err
	}
	bytes := append([]byte(config), 0)
	return a.call(func(text **byte) int32 {
		return a.lib.load(a.pointer, raw, &bytes[0], uint64(len(config)), text)
	})
}

// LoadFile does the same from a file, or from a folder of *.alloy files.
func (a *Agent) LoadFile(path string) (string, error) {
	raw, err := cString(path, "path")
	if err != nil {
		return "", err
	}
	return a.call(func(text **byte) int32 { return a.lib.loadFile(a.pointer, raw, text) })
}

// Start returns when all components run. EIO names those that could not start; the others run.
func (a *Agent) Start() error {
	_, err := a.call(func(text **byte) int32 { return a.lib.start(a.pointer, text) })
	return err
}

// Stop ends the run. What is queued is delivered within the deadline; if something is left it is
// dropped and counted, and the error is ETIMEDOUT. State can still be read.
func (a *Agent) Stop(deadline time.Duration) error {
	_, err := a.call(func(text **byte) int32 {
		return a.lib.stop(a.pointer, int64(max(deadline, 0)), text)
	})
	return err
}

// Close stops at once what still runs, waits for callbacks, and gives everything back. A further
// Close does nothing, and does not wait for the first, which may be waiting for the callback that
// the further one is called in.
func (a *Agent) Close() error {
	// Ends what others wait for, and is refused in a callback of this agent.
	if err := a.Stop(0); err != nil {
		if errors.Is(err, syscall.EBADF) {
			return nil
		}
		return err
	}
	a.lock.Lock()
	if a.closing {
		a.lock.Unlock()
		return nil
	}
	a.closing = true
	for a.calls > 0 {
		a.changed.Wait()
	}
	a.lock.Unlock()
	a.lib.close(a.pointer)
	a.pointer = nil
	a.unregister()
	return nil
}

func (a *Agent) read(what uint32) (string, error) {
	return a.call(func(text **byte) int32 { return a.lib.read(a.pointer, what, text) })
}

// Metrics is Prometheus text.
func (a *Agent) Metrics() (string, error) { return a.read(1) }

// Health is JSON, as GET /health of `andiron run`.
func (a *Agent) Health() (string, error) { return a.read(2) }

// Ledger is JSON: what became of each sample.
func (a *Agent) Ledger() (string, error) { return a.read(3) }

// Targets is JSON: which processes each target has.
func (a *Agent) Targets() (string, error) { return a.read(4) }

// Runs what belongs to the user. A panic must not pass through C.
func (a *Agent) guarded(function func() error) (ok bool) {
	defer func() {
		if value := recover(); value != nil {
			ok = false
			a.reported(&Panic{value, debug.Stack()})
		}
	}()
	err := function()
	if err != nil {
		a.reported(err)
	}
	return err == nil
}

// A report that panics has nobody to be reported to.
func (a *Agent) reported(err error) {
	defer func() { _ = recover() }()
	a.report(err)
}

func profileFinished(key uintptr, p *cProfile) int32 {
	c := callbackOf(key)
	if c.agent.guarded(func() error {
		if p.form == formBatch {
			return c.takeBatch(p)
		}
		return c.take(Profile{
			Name:    goString(p.name),
			Data:    append([]byte(nil), unsafe.Slice(p.bytes, p.nBytes)...),
			Samples: p.samples,
			Start:   time.Unix(0, p.startNs),
			End:     time.Unix(0, p.endNs),
		})
	}) {
		return 0
	}
	return -1
}

func lineLogged(key uintptr, level uint32, component, line *byte) {
	c := callbackOf(key)
	c.agent.guarded(func() error {
		c.log(Level(level), strings.ToValidUTF8(goString(component), "\uFFFD"),
			strings.ToValidUTF8(goString(line), "\uFFFD"))
		return nil
	})
}
