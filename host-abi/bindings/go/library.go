// SPDX-License-Identifier: Apache-2.0

// libandiron.so.1 as purego sees it, and its failures as errors.
//
// The structures are those of andiron/embed.h, member by member; tests/embed compares them with the
// header. A callback of purego is never freed, so the process has three, whose context is a number:
// the key of the agent or consumer that is meant.

package andiron

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

const (
	soname    = "libandiron.so.1"
	formBatch = 1
	formPprof = 2
)

// struct andiron_embed
type cEmbed struct {
	size       uint32
	logLevel   uint32
	pluginDirs *byte
	worker     *byte
	queueBytes uint64
	workers    uint32
	reserved   uint32
	context    uintptr
	log        uintptr
	answers    *byte
}

// struct andiron_profile
type cProfile struct {
	size    uint32
	form    uint32
	name    *byte
	batch   *cBatch
	bytes   *byte
	nBytes  uint64
	samples uint64
	startNs int64
	endNs   int64
	owner   unsafe.Pointer
	retain  uintptr
	release uintptr
}

type library struct {
	version    func() *byte
	open       func(how *cEmbed, ret *unsafe.Pointer, text **byte) int32
	close      func(a unsafe.Pointer) int32
	onProfiles func(a unsafe.Pointer, name *byte, form uint32, fn, context uintptr, text **byte) int32
	onTargets  func(a unsafe.Pointer, name *byte, fn, context uintptr, text **byte) int32
	load       func(a unsafe.Pointer, name, config *byte, n uint64, text **byte) int32
	loadFile   func(a unsafe.Pointer, path *byte, text **byte) int32
	start      func(a unsafe.Pointer, text **byte) int32
	stop       func(a unsafe.Pointer, deadlineNs int64, text **byte) int32
	read       func(a unsafe.Pointer, what uint32, text **byte) int32
	textFree   func(text *byte)
}

// Error is what libandiron refused, in its own words. errors.Is finds its Errno.
type Error struct {
	Errno syscall.Errno
	Text  string
}

func (e *Error) Error() string { return e.Text }
func (e *Error) Unwrap() error { return e.Errno }

var opened struct {
	sync.Mutex
	libraries  map[string]*library
	profilesFn uintptr
	targetsFn  uintptr
	loggingFn  uintptr
}

// The library at that path, or where the system's loader finds it. It is never unloaded.
func libraryAt(path string) (lib *library, err error) {
	if path == "" {
		path = soname
	}
	opened.Lock()
	defer opened.Unlock()
	if lib = opened.libraries[path]; lib != nil {
		return lib, nil
	}
	// Why it failed is told to the thread alone that it failed in.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err == nil {
		lib, err = functionsOf(handle)
	}
	if err != nil {
		return nil, &Error{syscall.ENOENT, fmt.Sprintf("libandiron cannot be used: %v; install "+
			"Debian's package libandiron1, or say where the file is by Options.Library", err)}
	}
	if opened.libraries == nil {
		opened.libraries = map[string]*library{}
		opened.profilesFn = purego.NewCallback(profileFinished)
		opened.targetsFn = purego.NewCallback(targetsChanged)
		opened.loggingFn = purego.NewCallback(lineLogged)
	}
	opened.libraries[path] = lib
	return lib, nil
}

func functionsOf(handle uintptr) (*library, error) {
	lib := &library{}
	for name, function := range map[string]any{
		"version": &lib.version, "open": &lib.open, "close": &lib.close,
		"on_profiles": &lib.onProfiles, "on_targets": &lib.onTargets, "load": &lib.load, "load_file": &lib.loadFile,
		"start": &lib.start, "stop": &lib.stop, "read": &lib.read, "text_free": &lib.textFree,
	} {
		address, err := purego.Dlsym(handle, "andiron_"+name)
		if err != nil {
			return nil, err
		}
		purego.RegisterFunc(function, address)
	}
	return lib, nil
}

// Makes a call and gives its text, or what it refused.
func (lib *library) call(function func(text **byte) int32) (string, error) {
	var raw *byte
	result := function(&raw)
	text := strings.ToValidUTF8(goString(raw), "\uFFFD")
	lib.textFree(raw)
	if result >= 0 {
		return text, nil
	}
	failure := &Error{syscall.Errno(-result), strings.TrimRight(text, "\n")}
	if text == "" {
		failure.Text = failure.Errno.Error()
	}
	return "", failure
}

func goString(s *byte) string {
	if s == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(s), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(s, n))
}

// A text as C takes it, where it would end at a zero.
func cString(text, what string) (*byte, error) {
	raw, err := syscall.BytePtrFromString(text)
	if err != nil {
		return nil, &Error{syscall.EINVAL, what + " has a zero in it"}
	}
	return raw, nil
}
