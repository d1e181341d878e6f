// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/google/pprof/profile"
	googlev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"google.golang.org/protobuf/proto"
)

func checkRange(start, end int64) error {
	if start == 0 || end == 0 {
		return invalid("missing time range in the query")
	}
	return nil
}

// SelectMergeProfile sums the chosen column of all profiles that match.
func (s *server) SelectMergeProfile(_ context.Context, req *connect.Request[querierv1.SelectMergeProfileRequest]) (*connect.Response[googlev1.Profile], error) {
	var chosen []*profile.Profile
	m, merged := req.Msg, &googlev1.Profile{StringTable: []string{""}}
	if err := checkRange(m.Start, m.End); err != nil {
		return nil, err
	}
	err := s.store.visit(req.Header().Get("X-Scope-OrgID"), m.LabelSelector, m.Start, m.End, func(_ *series, p *profile.Profile, column int, kind string) {
		if kind == m.ProfileTypeID {
			chosen = append(chosen, only(p, column))
		}
	})
	if err != nil || len(chosen) == 0 {
		return connect.NewResponse(merged), err
	}
	sum, err := profile.Merge(chosen)
	if err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	if err := sum.WriteUncompressed(&raw); err != nil {
		return nil, err
	}
	return connect.NewResponse(merged), proto.Unmarshal(raw.Bytes(), merged)
}

// only copies a profile with one of its value columns and without labels.
func only(p *profile.Profile, column int) *profile.Profile {
	c := p.Copy()
	c.SampleType = c.SampleType[column : column+1]
	c.DefaultSampleType = ""
	for _, sample := range c.Sample {
		sample.Value = sample.Value[column : column+1]
		sample.Label, sample.NumLabel, sample.NumUnit = nil, nil, nil
	}
	return c
}

// derived are the labels that the server adds to a series for a profile type.
func derived(row *series, kind string) []*pair {
	part := strings.Split(kind, ":")
	add := map[string]string{"__profile_type__": kind, "__type__": part[1], "__unit__": part[2],
		"__period_type__": part[3], "__period_unit__": part[4], "__service_name__": value(row.labels, "service_name")}
	all := slices.Clone(row.labels)
	for _, name := range slices.Sorted(maps.Keys(add)) {
		all = append(all, &pair{Name: name, Value: add[name]})
	}
	return all
}

func (s *server) each(tenant string, matchers []string, start, end int64, see func(labels []*pair)) error {
	if err := checkRange(start, end); err != nil {
		return err
	}
	if len(matchers) == 0 {
		matchers = []string{"{}"}
	}
	for _, matcher := range matchers {
		err := s.store.visit(tenant, matcher, start, end, func(row *series, _ *profile.Profile, _ int, kind string) {
			see(derived(row, kind))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Series lists the label sets, cut down to the names asked for.
func (s *server) Series(_ context.Context, req *connect.Request[querierv1.SeriesRequest]) (*connect.Response[querierv1.SeriesResponse], error) {
	m, sets := req.Msg, map[string]*typesv1.Labels{}
	err := s.each(req.Header().Get("X-Scope-OrgID"), m.Matchers, m.Start, m.End, func(labels []*pair) {
		kept := labels
		if len(m.LabelNames) > 0 {
			kept = slices.DeleteFunc(kept, func(l *pair) bool { return !slices.Contains(m.LabelNames, l.Name) })
		}
		sets[show(kept)] = &typesv1.Labels{Labels: kept}
	})
	if err != nil {
		return nil, err
	}
	response := &querierv1.SeriesResponse{}
	for _, key := range slices.Sorted(maps.Keys(sets)) {
		response.LabelsSet = append(response.LabelsSet, sets[key])
	}
	return connect.NewResponse(response), nil
}

// LabelNames lists the names of all labels.
func (s *server) LabelNames(_ context.Context, req *connect.Request[typesv1.LabelNamesRequest]) (*connect.Response[typesv1.LabelNamesResponse], error) {
	m, names := req.Msg, map[string]bool{}
	err := s.each(req.Header().Get("X-Scope-OrgID"), m.Matchers, m.Start, m.End, func(labels []*pair) {
		for _, l := range labels {
			names[l.Name] = true
		}
	})
	return connect.NewResponse(&typesv1.LabelNamesResponse{Names: slices.Sorted(maps.Keys(names))}), err
}
