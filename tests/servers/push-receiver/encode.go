// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"time"

	"github.com/google/pprof/profile"
)

const frames, locations = 30, 4000

// encode is the judge of tests/bench/pprof: the same profile of n distinct stacks
// by google/pprof's own encoder, from nothing to bytes, plain and as gzip
// of the level that Alloy uses. It prints nanoseconds per stack.
func encode(n int) {
	for _, packed := range []bool{false, true} {
		var out bytes.Buffer
		begun := time.Now()
		p := build(n)
		if packed {
			zip, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
			must(p.WriteUncompressed(zip))
			must(zip.Close())
		} else {
			must(p.WriteUncompressed(&out))
		}
		fmt.Printf("%v %d %d %d\n", packed, n, int(time.Since(begun))/n, out.Len())
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func build(n int) *profile.Profile {
	seed := uint64(1)
	random := func() uint64 {
		seed = seed*6364136223846793005 + 1442695040888963407
		return seed >> 33
	}
	kind := &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}
	p := &profile.Profile{SampleType: []*profile.ValueType{kind}, PeriodType: kind, Period: 1, TimeNanos: 1, DurationNanos: 1,
		Mapping: []*profile.Mapping{{ID: 1, File: "/usr/lib/libdemo.so"}}}
	for i := range uint64(locations) {
		f := &profile.Function{ID: i + 1, Name: fmt.Sprintf("namespace::function_%d", i)}
		p.Function = append(p.Function, f)
		p.Location = append(p.Location, &profile.Location{ID: i + 1, Address: 0x1000 + i*16, Mapping: p.Mapping[0],
			Line: []profile.Line{{Function: f}}})
	}
	for i := range n {
		stack := make([]*profile.Location, frames)
		for k := range stack {
			at := (uint64(i)/(1<<(k/3))*31 + uint64(k)*97) % locations
			if k < 6 {
				at = random() % locations
			}
			stack[k] = p.Location[at]
		}
		p.Sample = append(p.Sample, &profile.Sample{Location: stack, Value: []int64{10309278}})
	}
	return p
}
