// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/google/pprof/profile"
	googlev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
)

// Push judges each series by itself: the good ones are stored even where
// another makes the whole request fail.
func (s *server) Push(_ context.Context, req *connect.Request[pushv1.PushRequest]) (*connect.Response[pushv1.PushResponse], error) {
	var failed []error
	tenant := req.Header().Get("X-Scope-OrgID")
	n := 0
	for _, one := range req.Msg.Series {
		for _, sample := range one.Samples {
			n++
			if err := s.take(tenant, one, sample.RawProfile); err != nil {
				failed = append(failed, err)
			}
		}
	}
	time.Sleep(s.ack)
	if n == 0 {
		return nil, invalid("no profiles received")
	}
	if len(failed) > 0 {
		return nil, join(failed)
	}
	return connect.NewResponse(&pushv1.PushResponse{}), nil
}

// join answers as the first failure does, with the texts of all.
func join(failed []error) error {
	var coded *connect.Error
	if len(failed) == 1 {
		return failed[0]
	}
	texts := make([]string, len(failed))
	for i, err := range failed {
		texts[i] = err.Error()
		if errors.As(err, &coded) {
			texts[i] = coded.Message()
		}
	}
	text := fmt.Errorf("%d errors: %s", len(failed), strings.Join(texts, "; "))
	if errors.As(failed[0], &coded) {
		return connect.NewError(coded.Code(), text)
	}
	return text
}

func (s *server) take(tenant string, one *pushv1.RawProfileSeries, packed []byte) error {
	raw, err := unpack(packed, s.limits.maxBytes)
	if err != nil {
		return err
	}
	decoded := &googlev1.Profile{}
	if err := decoded.UnmarshalVT(raw); err != nil {
		return err // a plain error: 500, as the real server answers
	}
	if err := s.bucket.take(len(raw)); err != nil {
		return err
	}
	labels := withService(one.Labels)
	if err := s.limits.checkLabels(labels); err != nil {
		return err
	}
	if decoded.TimeNanos == 0 {
		decoded.TimeNanos = time.Now().UnixNano()
	}
	if err := s.limits.checkProfile(labels, decoded); err != nil {
		return err
	}
	parsed, err := profile.ParseUncompressed(raw)
	if err == nil {
		err = parsed.CheckValid()
	}
	if err != nil {
		return invalid("google/pprof refuses it: %v", err)
	}
	parsed.TimeNanos = decoded.TimeNanos
	if err := s.store.add(tenant, labels, parsed, s.limits.maxNames); err != nil {
		return err
	}
	return s.journal.add(tenant, labels, parsed)
}

// unpack has the real server's words for what is not a gzip'd profile.
func unpack(packed []byte, max int) ([]byte, error) {
	switch {
	case len(packed) == 0:
		return nil, errors.New("gzip reset: EOF")
	case len(packed) < 10:
		return nil, errors.New("gzip reset: unexpected EOF")
	case packed[0] != 0x1f || packed[1] != 0x8b:
		return packed, tooLarge(len(packed), max)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("gzip reset: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(reader, int64(max)+1))
	if err != nil {
		return nil, fmt.Errorf("copy to buffer: %w", err)
	}
	return raw, tooLarge(len(raw), max)
}

func tooLarge(n, max int) error {
	if n <= max {
		return nil
	}
	return invalid("uncompressed profile payload size exceeds limit of %.1f MB", float64(max)/1e6)
}

// A bucket of bytes. What is larger than the burst never passes.
type bucket struct {
	mu          sync.Mutex
	rate, burst float64
	tokens      float64
	last        time.Time
}

func (b *bucket) take(n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if !b.last.IsZero() {
		b.tokens = min(b.burst, b.tokens+now.Sub(b.last).Seconds()*b.rate)
	}
	b.last = now
	if float64(n) > b.tokens {
		return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("push rate limit (%.1f MiB) exceeded while adding %.1f MiB", b.rate/(1<<20), float64(n)/(1<<20)))
	}
	b.tokens -= float64(n)
	return nil
}
