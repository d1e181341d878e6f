// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A fault replaces the next n answers to Push. The modes:
//
//	code     answer with an HTTP status and a Connect error of `message`
//	lost     carry it out, then break the connection instead of answering
//	reset    break the connection at once
//	hang     never answer
//	garbage  answer 200 with what is not HTTP at all
//	slow     answer one byte a second
type fault struct {
	mode, message string
	code, n       int
}

type faults struct {
	mu   sync.Mutex
	next fault
	seen int
}

// control sets the fault: POST /control/fault?mode=code&code=500&message=x&n=3.
func (f *faults) control(w http.ResponseWriter, r *http.Request) {
	code, _ := strconv.Atoi(r.FormValue("code"))
	n, err := strconv.Atoi(r.FormValue("n"))
	if err != nil {
		http.Error(w, "n must be a number", http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = fault{r.FormValue("mode"), r.FormValue("message"), code, n}
}

// count tells how many requests for Push have come.
func (f *faults) count(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintln(w, f.seen)
}

func (f *faults) take() (fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen++
	if f.next.n == 0 {
		return fault{}, false
	}
	f.next.n--
	return f.next, true
}

func (f *faults) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault, ok := f.take()
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		if fault.mode == "lost" {
			next.ServeHTTP(discard{header: http.Header{}}, r)
			panic(http.ErrAbortHandler)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		fault.answer(w, r)
	})
}

var words = map[int]string{400: "invalid_argument", 401: "unauthenticated", 403: "permission_denied",
	429: "resource_exhausted", 500: "unknown", 503: "unavailable", 504: "deadline_exceeded"}

func (f *fault) answer(w http.ResponseWriter, r *http.Request) {
	switch f.mode {
	case "code":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.code)
		_ = json.NewEncoder(w).Encode(map[string]string{"code": words[f.code], "message": f.message})
	case "hang":
		<-r.Context().Done()
	case "garbage":
		raw(w, "\x00\x01 this is not HTTP\r\n\r\n")
	case "slow":
		w.Header().Set("Content-Length", "1000000")
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte("x"))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Second)
		}
	default:
		panic(http.ErrAbortHandler)
	}
}

func raw(w http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = conn.Write([]byte(text))
	_ = conn.Close()
}

// discard is a ResponseWriter that nobody reads.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
