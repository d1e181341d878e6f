// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/google/pprof/profile"
)

// A journal keeps what was stored over restarts, kill -9 included: as the real
// server does, it is written before the answer. Without a file it keeps nothing.
type journal struct {
	mu   sync.Mutex
	file *os.File
}

type kept struct {
	Tenant  string
	Labels  []string // name, value, name, …
	Profile []byte
}

// open reads what an earlier run kept; the end of a record that it was
// writing when it was killed is cut off.
func (j *journal) open(path string, see func(kept) error) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	j.file = file
	in, whole := bufio.NewReader(file), int64(0)
	for {
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			break
		}
		body := make([]byte, int(size[0])<<24|int(size[1])<<16|int(size[2])<<8|int(size[3]))
		if _, err := io.ReadFull(in, body); err != nil {
			break
		}
		var one kept
		if err := gob.NewDecoder(bytes.NewReader(body)).Decode(&one); err != nil {
			return err
		}
		if err := see(one); err != nil {
			return err
		}
		whole += int64(len(size) + len(body))
	}
	if err := file.Truncate(whole); err != nil {
		return err
	}
	_, err = file.Seek(whole, io.SeekStart)
	return err
}

func (j *journal) add(tenant string, labels []*pair, p *profile.Profile) error {
	if j.file == nil {
		return nil
	}
	var raw, body bytes.Buffer
	one := kept{Tenant: tenant}
	for _, l := range labels {
		one.Labels = append(one.Labels, l.Name, l.Value)
	}
	err := p.WriteUncompressed(&raw)
	one.Profile = raw.Bytes()
	err = errors.Join(err, gob.NewEncoder(&body).Encode(one))
	if err != nil {
		return err
	}
	n := body.Len()
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err = j.file.Write(append([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, body.Bytes()...))
	return err
}

// replay stores what the journal kept.
func (s *server) replay(one kept) error {
	p, err := profile.ParseUncompressed(one.Profile)
	if err != nil {
		return err
	}
	labels := make([]*pair, 0, len(one.Labels)/2)
	for i := 0; i+1 < len(one.Labels); i += 2 {
		labels = append(labels, &pair{Name: one.Labels[i], Value: one.Labels[i+1]})
	}
	return s.store.add(one.Tenant, labels, p, s.limits.maxNames)
}
