// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/pprof/profile"
)

// A series is one label set of one tenant, as the server keeps it: the text
// labels of samples have become labels of the series.
type series struct {
	tenant   string
	labels   []*pair
	profiles []*profile.Profile
}

type store struct {
	mu   sync.Mutex
	rows map[string]*series
}

// add splits a profile by the text labels of its samples and keeps the parts.
// Samples that are negative, or zero throughout, are left out.
func (st *store) add(tenant string, labels []*pair, p *profile.Profile, maxNames int) error {
	parts := map[string][]*profile.Sample{}
	sets := map[string][]*pair{}
	for _, sample := range p.Sample {
		if slices.Min(sample.Value) < 0 || slices.Max(sample.Value) == 0 {
			continue
		}
		all := withSampleLabels(labels, sample.Label)
		if len(all) > maxNames {
			return invalid("profile series '%s' has %d label names; limit %d", show(all), len(all), maxNames)
		}
		parts[show(all)] = append(parts[show(all)], sample)
		sets[show(all)] = all
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for key, samples := range parts {
		part := &profile.Profile{
			SampleType: p.SampleType, Sample: samples,
			Mapping: p.Mapping, Location: p.Location, Function: p.Function,
			PeriodType: p.PeriodType, Period: p.Period,
			TimeNanos: p.TimeNanos, DurationNanos: p.DurationNanos,
		}
		id := tenant + key
		if st.rows[id] == nil {
			st.rows[id] = &series{tenant: tenant, labels: sets[key]}
		}
		st.rows[id].profiles = append(st.rows[id].profiles, part.Copy())
	}
	return nil
}

func withSampleLabels(labels []*pair, sample map[string][]string) []*pair {
	all := slices.Clone(labels)
	for name, values := range sample {
		if value(labels, name) == "" && len(values) > 0 {
			all = append(all, &pair{Name: name, Value: values[0]})
		}
	}
	slices.SortFunc(all, func(a, b *pair) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// compact does to the store what compaction does: of the profiles of one
// series with one time a single one is left. It returns how many went.
func (st *store) compact() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	gone := 0
	for _, row := range st.rows {
		kept := map[int64]*profile.Profile{}
		for _, p := range row.profiles {
			kept[p.TimeNanos] = p
		}
		gone += len(row.profiles) - len(kept)
		row.profiles = slices.Collect(maps.Values(kept))
	}
	return gone
}

// profileTypes names the types that a profile holds, one per sample type.
func profileTypes(row *series, p *profile.Profile) []string {
	name, period := value(row.labels, "__name__"), ":"
	if p.PeriodType != nil {
		period = p.PeriodType.Type + ":" + p.PeriodType.Unit
	}
	types := make([]string, len(p.SampleType))
	for i, kind := range p.SampleType {
		types[i] = fmt.Sprintf("%s:%s:%s:%s", name, kind.Type, kind.Unit, period)
	}
	return types
}

// visit calls see for every profile of the tenant within [start, end] ms whose
// series the selector matches, and every profile type of it.
func (st *store) visit(tenant, selector string, start, end int64, see func(row *series, p *profile.Profile, column int, kind string)) error {
	matches, err := parseSelector(selector)
	if err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(st.rows)) {
		row := st.rows[id]
		if row.tenant != tenant || !matches(row.labels) {
			continue
		}
		for _, p := range row.profiles {
			if at := p.TimeNanos / 1e6; at < start || at > end {
				continue
			}
			for column, kind := range profileTypes(row, p) {
				see(row, p, column, kind)
			}
		}
	}
	return nil
}

// parseSelector reads {name="value", …}; only equality and inequality.
func parseSelector(text string) (func([]*pair) bool, error) {
	type matcher struct {
		name, value string
		equal       bool
	}
	var all []matcher
	text = strings.TrimSpace(text)
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, invalid("failed to parse label selector: %q", text)
	}
	for part := range strings.SplitSeq(text[1:len(text)-1], ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, rest, ok := strings.Cut(part, "=")
		name, unequal := strings.CutSuffix(strings.TrimSpace(name), "!")
		rest = strings.TrimSpace(rest)
		if !ok || len(rest) < 2 || rest[0] != '"' || rest[len(rest)-1] != '"' {
			return nil, invalid("failed to parse label selector: %q", text)
		}
		all = append(all, matcher{name, rest[1 : len(rest)-1], !unequal})
	}
	return func(labels []*pair) bool {
		for _, m := range all {
			if (value(labels, m.name) == m.value) != m.equal {
				return false
			}
		}
		return true
	}, nil
}
