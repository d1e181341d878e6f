// SPDX-License-Identifier: Apache-2.0

// A Go program with what makes tables of functions differ: methods, closures,
// generics, calls that are inlined three deep, and much of the standard library.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"time"
)

type ring struct {
	values [64]uint64
}

func mix(x uint64) uint64 {
	x ^= x >> 31
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>29
}

func next(r *ring, i int) uint64 {
	return mix(r.values[(i+7)&63] + uint64(i))
}

func (r *ring) step(i int) uint64 {
	r.values[i&63] = next(r, i)
	return r.values[i&63]
}

func largest[T int | uint64](values []T) T {
	var best T
	for _, v := range values {
		if v > best {
			best = v
		}
	}
	return best
}

//go:noinline
func spin(until time.Time) uint64 {
	var r ring
	var sum uint64
	for time.Now().Before(until) {
		for i := 0; i < 100000; i++ {
			sum += r.step(i)
		}
	}
	return sum ^ largest(r.values[:])
}

func main() {
	d := 100 * time.Millisecond
	if len(os.Args) > 1 {
		d, _ = time.ParseDuration(os.Args[1])
	}
	words := strings.Fields("how tables differ")
	sort.Slice(words, func(i, j int) bool { return words[i] < words[j] })
	fmt.Println(words, spin(time.Now().Add(d)))
}
