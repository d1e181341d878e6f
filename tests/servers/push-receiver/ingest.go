// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"regexp"
)

var named = regexp.MustCompile(`^[^{}]+(\{[^{}]*\})?$`)

// ingest takes packed recordings of JFR, which Pyroscope's Java client sends. It answers
// as the real server does, and keeps nothing: it reads no more than their first bytes.
func (s *server) ingest(w http.ResponseWriter, r *http.Request) {
	if !named.MatchString(r.URL.Query().Get("name")) {
		http.Error(w, "invalid name", http.StatusBadRequest)
		return
	}
	part, _, err := r.FormFile("jfr")
	if err != nil || r.URL.Query().Get("format") != "jfr" {
		http.Error(w, "this stand-in takes JFR alone", http.StatusUnprocessableEntity)
		return
	}
	defer part.Close()
	packed, err := gzip.NewReader(part)
	if err != nil {
		http.Error(w, "gzip reset: "+err.Error(), http.StatusUnprocessableEntity)
		return
	}
	recording, err := io.ReadAll(packed)
	if err != nil || !bytes.HasPrefix(recording, []byte("FLR\x00")) {
		http.Error(w, "no recording of JFR", http.StatusUnprocessableEntity)
	}
}
