// SPDX-License-Identifier: Apache-2.0

// Push-receiver stands in for a Pyroscope server in tests: it takes what
// PusherService/Push is sent, judges it as a real v2.2.1 was observed to, and
// gives it back through the querier's calls. Unlike the real one it also
// refuses what google/pprof's own CheckValid refuses, and can be told to fail.
//
// It prints its URL on standard output once it listens, and ends at SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
)

type server struct {
	pushv1connect.UnimplementedPusherServiceHandler
	querierv1connect.UnimplementedQuerierServiceHandler
	limits  limits
	bucket  bucket
	store   store
	faults  faults
	journal journal
	ack     time.Duration
	tls     struct{ cert, key string }
	// It was asked for figures, and has no more to do.
	benched bool
}

func flags() (s *server, listen, journal string) {
	s = &server{}
	l := &s.limits
	flag.StringVar(&listen, "listen", "127.0.0.1:0", "address to listen on")
	flag.StringVar(&journal, "journal", "", "file that keeps what is stored over restarts; none: memory does")
	rate := flag.Float64("rate-mib", 4, "bytes per second that are taken, in MiB")
	burst := flag.Float64("burst-mib", 2, "bytes that are taken at once, in MiB")
	flag.IntVar(&l.maxBytes, "max-profile-bytes", 4<<20, "uncompressed size of one profile")
	flag.IntVar(&l.maxSamples, "max-samples", 16000, "samples of one profile")
	flag.IntVar(&l.maxSampleLabels, "max-sample-labels", 100, "labels of one sample")
	flag.IntVar(&l.maxNames, "max-label-names", 30, "label names of one series")
	flag.IntVar(&l.maxName, "max-label-name", 1024, "length of a label's name")
	flag.IntVar(&l.maxValue, "max-label-value", 2048, "length of a label's value")
	flag.DurationVar(&l.older, "reject-older-than", time.Hour, "age of the oldest profile taken")
	flag.DurationVar(&l.newer, "reject-newer-than", 10*time.Minute, "how far ahead a profile may be")
	flag.DurationVar(&s.ack, "ack-delay", 0, "time before each answer; the real server's is 500ms")
	flag.StringVar(&s.tls.cert, "tls-cert", "", "file with the certificate to speak TLS with")
	flag.StringVar(&s.tls.key, "tls-key", "", "file with its key")
	flag.Func("encode", "how many stacks to encode, for a benchmark, instead of listening; may be given again", func(n string) error {
		stacks, err := strconv.Atoi(n)
		if err == nil {
			encode(stacks)
			s.benched = true
		}
		return err
	})
	flag.Parse()
	s.bucket = bucket{rate: *rate * (1 << 20), burst: *burst * (1 << 20)}
	s.bucket.tokens = s.bucket.burst
	s.store.rows = map[string]*series{}
	return s, listen, journal
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	path, handler := pushv1connect.NewPusherServiceHandler(s, connect.WithReadMaxBytes(256<<20))
	mux.Handle(path, s.faults.wrap(handler))
	path, handler = querierv1connect.NewQuerierServiceHandler(s)
	mux.Handle(path, handler)
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ready")
	})
	mux.HandleFunc("POST /control/fault", s.faults.control)
	mux.HandleFunc("POST /control/compact", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, s.store.compact())
	})
	mux.HandleFunc("POST /v1development/profiles", s.otlp)
	mux.HandleFunc("POST /ingest", s.ingest)
	mux.HandleFunc("GET /control/requests", s.faults.count)
	return mux
}

func (s *server) serve(web *http.Server, listener net.Listener) error {
	if s.tls.cert == "" {
		fmt.Printf("http://%s\n", listener.Addr())
		return web.Serve(listener)
	}
	fmt.Printf("https://%s\n", listener.Addr())
	return web.ServeTLS(listener, s.tls.cert, s.tls.key)
}

func main() {
	s, address, path := flags()
	if s.benched {
		return
	}
	if path != "" {
		if err := s.journal.open(path, s.replay); err != nil {
			log.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	web := &http.Server{Handler: s.routes(), Protocols: protocols, ReadHeaderTimeout: time.Minute}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	go func() {
		<-ctx.Done()
		_ = web.Close()
	}()
	if err := s.serve(web, listener); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}
