// SPDX-License-Identifier: Apache-2.0

// Targets as Go reads them: andiron/target.h, copied.

package andiron

import "unsafe"

// struct andiron_str
type cStr struct {
	ptr *byte
	len uint64
}

// struct andiron_label
type cLabel struct {
	name  uint32
	value uint32
}

// struct andiron_target
type cTarget struct {
	row         uint64
	order       uint64
	fingerprint uint64
	labelStart  uint32
	nLabels     uint32
}

// struct andiron_targets
type cTargets struct {
	size       uint32
	flags      uint32
	producer   uint64
	generation uint64
	strings    *cStr
	nStrings   uint64
	labels     *cLabel
	nLabels    uint64
	rows       *cTarget
	nRows      uint64
	nAdded     uint64
	removed    *uint64
	nRemoved   uint64
	owner      unsafe.Pointer
	retain     uintptr
	release    uintptr
}

const targetsSnapshot = 1

// Target says what to profile, and how it is called.
type Target struct {
	Row    uint64 // which one of its producer
	Order  uint64 // its place among them
	Labels map[string]string
}

// Targets is a change. Each producer is one of the lists that the consumer refers to.
type Targets struct {
	Name       string // of the consumer
	Producer   uint64
	Generation uint64   // one more with each change; after a gap a snapshot follows
	Snapshot   bool     // Rows are all that the producer has
	Rows       []Target // new, or in place of the row of the same number
	Removed    []uint64 // rows that are gone
}

func newTargets(name string, c *cTargets) Targets {
	t := Targets{
		Name:       name,
		Producer:   c.producer,
		Generation: c.generation,
		Snapshot:   c.flags&targetsSnapshot != 0,
		Removed:    append([]uint64(nil), unsafe.Slice(c.removed, c.nRemoved)...),
	}
	texts := make([]string, c.nStrings)
	for i, s := range unsafe.Slice(c.strings, c.nStrings) {
		texts[i] = string(unsafe.Slice(s.ptr, s.len))
	}
	labels := unsafe.Slice(c.labels, c.nLabels)
	for _, row := range unsafe.Slice(c.rows, c.nRows) {
		target := Target{row.row, row.order, make(map[string]string, row.nLabels)}
		for _, l := range labels[row.labelStart:][:row.nLabels] {
			target.Labels[texts[l.name]] = texts[l.value]
		}
		t.Rows = append(t.Rows, target)
	}
	return t
}

func targetsChanged(key uintptr, update *cTargets) {
	c := callbackOf(key)
	c.agent.guarded(func() error {
		c.targets(newTargets(c.name, update))
		return nil
	})
}
