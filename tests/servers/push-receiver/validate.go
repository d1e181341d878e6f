// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect"
	googlev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
)

type limits struct {
	maxBytes, maxSamples, maxSampleLabels int
	maxNames, maxName, maxValue           int
	older, newer                          time.Duration
}

type pair = typesv1.LabelPair

func invalid(format string, args ...any) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(format, args...))
}

// withService returns the labels sorted by name, service_name among them.
func withService(labels []*pair) []*pair {
	sorted := slices.Clone(labels)
	if value(sorted, "service_name") == "" {
		sorted = append(sorted, &pair{Name: "service_name", Value: "unknown_service"})
	}
	slices.SortStableFunc(sorted, func(a, b *pair) int { return cmp.Compare(a.Name, b.Name) })
	return sorted
}

func value(labels []*pair, name string) string {
	for _, l := range labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

func show(labels []*pair) string {
	texts := make([]string, len(labels))
	for i, l := range labels {
		texts[i] = fmt.Sprintf("%s=%q", l.Name, l.Value)
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

func (l *limits) checkLabels(labels []*pair) error {
	set := show(labels)
	if len(labels) > l.maxNames {
		return invalid("profile series '%s' has %d label names; limit %d", set, len(labels), l.maxNames)
	}
	if name := value(labels, "__name__"); name == "" || !utf8.ValidString(name) {
		return invalid("invalid labels '%s' with error: invalid metric name", set)
	}
	for i, pair := range labels {
		switch {
		case len(pair.Name) > l.maxName:
			return invalid("profile with labels '%s' has label name too long: '%s'", set, pair.Name)
		case len(pair.Value) > l.maxValue:
			return invalid("profile with labels '%s' has label value too long: '%s'", set, pair.Value)
		case pair.Name == "":
			return invalid("invalid labels '%s' with error: invalid label name ''", set)
		case i > 0 && labels[i-1].Name == pair.Name:
			return invalid("profile with labels '%s' has duplicate label name: '%s'", set, pair.Name)
		}
	}
	return nil
}

func (l *limits) checkProfile(labels []*pair, p *googlev1.Profile) error {
	set, now, at := show(labels), time.Now(), time.Unix(0, p.TimeNanos)
	if len(p.SampleType) == 0 {
		return invalid("empty profile")
	}
	if from, to := now.Add(-l.older), now.Add(l.newer); at.Before(from) || at.After(to) {
		return invalid("profile with labels '%s' is outside of ingestion window (profile timestamp: %s, the ingestion window starts at %s and ends at %s)", set, at.UTC(), from.UTC(), to.UTC())
	}
	if len(p.Sample) > l.maxSamples {
		return invalid("the profile with labels '%s' exceeds the samples count limit (max_profile_stacktrace_samples, actual: %d, limit: %d)", set, len(p.Sample), l.maxSamples)
	}
	for _, sample := range p.Sample {
		if len(sample.Value) != len(p.SampleType) {
			return invalid("sample value length mismatch")
		}
		if len(sample.Label) > l.maxSampleLabels {
			return invalid("the profile with labels '%s' exceeds the sample labels limit (max_profile_stacktrace_sample_labels, actual: %d, limit: %d)", set, len(sample.Label), l.maxSampleLabels)
		}
	}
	if err := checkStrings(p); err != nil {
		return err
	}
	if err := checkIDs(p); err != nil {
		return err
	}
	return stumble(p)
}

// stumble is what the real server does over a zero sample in a profile without
// a period type: a plain error, so 500.
func stumble(p *googlev1.Profile) error {
	for _, sample := range p.Sample {
		if p.PeriodType == nil && slices.Max(sample.Value) == 0 {
			return errors.New("runtime error: invalid memory address or nil pointer dereference")
		}
	}
	return nil
}

func checkStrings(p *googlev1.Profile) error {
	if len(p.StringTable) == 0 || p.StringTable[0] != "" {
		return invalid("string 0 should be empty string")
	}
	for _, text := range p.StringTable {
		if !utf8.ValidString(text) {
			return invalid("invalid utf8 string hex: %s", hex.EncodeToString([]byte(text)))
		}
	}
	for _, kind := range p.SampleType {
		if outside(p, kind.Type) || outside(p, kind.Unit) {
			return invalid("sample type string index out of range")
		}
		if strings.Contains(p.StringTable[kind.Type], "-") {
			return invalid("sample type contains -")
		}
	}
	return nil
}

func outside(p *googlev1.Profile, index int64) bool {
	return index < 0 || index >= int64(len(p.StringTable))
}

func checkIDs(p *googlev1.Profile) error {
	for _, f := range p.Function {
		switch {
		case f.Id == 0:
			return invalid("function id is 0")
		case outside(p, f.Name) || outside(p, f.SystemName) || outside(p, f.Filename):
			return invalid("function name string index out of range")
		}
	}
	for _, location := range p.Location {
		if location.Id == 0 {
			return invalid("location id is 0")
		}
	}
	return nil
}
