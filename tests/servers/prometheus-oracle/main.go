// SPDX-License-Identifier: Apache-2.0

// Command prometheus-oracle answers cases of relabeling, lines on its standard
// input, by Prometheus's own library, and cases of regular expressions by Go's.
// The form is described in tests/golden/relabel.txt.
//
//	prometheus-oracle answers          each "in" and "text" is answered with a line
//	prometheus-oracle measure N        the rules and labels of a case, N times; ns each of the best 1,000
//	prometheus-oracle tables NAME      Unicode data as C: category, script or case
//	prometheus-oracle unicode-version
//
// And by Prometheus's own rule checker and query engine:
//
//	prometheus-oracle rules FILE       the rules of a file, as JSON; each with the metrics it reads
//	prometheus-oracle expressions      each line, an expression, is answered with its metrics
//	prometheus-oracle fired FILE       cases of series: which rules of the file fire at their end
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"time"
	"unicode"
)

func answerAll(in io.Reader, out io.Writer) error {
	w := bufio.NewWriterSize(out, 1<<16)
	defer w.Flush()
	var c Case
	return lines(in, func(line string) error {
		answer, err := c.Take(line)
		if answer != "" {
			w.WriteString(answer)
			w.WriteByte('\n')
		}
		return err
	})
}

func lines(in io.Reader, take func(string) error) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 1<<16), 1<<26)
	for scanner.Scan() {
		if err := take(scanner.Text()); err != nil {
			return fmt.Errorf("%q: %w", scanner.Text(), err)
		}
	}
	return scanner.Err()
}

// measure takes the rules and labels as `answers` does, works them off n times
// and tells the time of the best thousand.
func measure(in io.Reader, n int) error {
	var c Case
	if err := lines(in, func(line string) error { _, err := c.Take(line); return err }); err != nil {
		return err
	}
	kept, best := 0, int64(math.MaxInt64)
	for i := 0; i < n/1000; i++ {
		began := time.Now()
		for k := 0; k < 1000; k++ {
			if c.once() {
				kept++
			}
		}
		best = min(best, time.Since(began).Nanoseconds()/1000)
	}
	fmt.Printf("%d ns per target, kept %d of %d\n", best, kept, n)
	return nil
}

var errUsage = errors.New("usage: prometheus-oracle answers | measure N | tables NAME | " +
	"unicode-version | rules FILE | expressions | fired FILE")

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "answers":
		return answerAll(os.Stdin, os.Stdout)
	case len(args) == 2 && args[0] == "measure":
		n, err := strconv.Atoi(args[1])
		if err != nil || n < 1 {
			return fmt.Errorf("measure how often? %q is no number", args[1])
		}
		return measure(os.Stdin, n)
	case len(args) == 2 && args[0] == "tables":
		return writeTables(os.Stdout, args[1])
	case len(args) == 1 && args[0] == "unicode-version":
		fmt.Println(unicode.Version)
		return nil
	}
	return runRules(args)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "prometheus-oracle:", err)
		os.Exit(1)
	}
}
