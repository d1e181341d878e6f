// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	service "go.opentelemetry.io/proto/otlp/collector/profiles/v1development"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
)

// otlp takes OTLP's profiles signal over HTTP and answers as the real server
// does, its unusual statuses included.
func (s *server) otlp(w http.ResponseWriter, r *http.Request) {
	if kind := r.Header.Get("Content-Type"); kind != "application/x-protobuf" && kind != "application/protobuf" {
		http.Error(w, "unsupported content type", http.StatusUnsupportedMediaType)
		return
	}
	request, err := readRequest(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if request.Dictionary == nil && len(request.ResourceProfiles) > 0 {
		http.Error(w, "rpc error: code = InvalidArgument desc = missing profile metadata", http.StatusInternalServerError)
		return
	}
	for _, of := range request.ResourceProfiles {
		for _, scope := range of.ScopeProfiles {
			for _, one := range scope.Profiles {
				if err := s.takeOTLP(r.Header.Get("X-Scope-OrgID"), of, one, request.Dictionary); err != nil {
					http.Error(w, err.Error(), http.StatusBadRequest)
					return
				}
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func readRequest(r *http.Request) (*service.ExportProfilesServiceRequest, error) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		body = unpacked
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	request := &service.ExportProfilesServiceRequest{}
	return request, proto.Unmarshal(raw, request)
}

func attributeText(v *common.AnyValue) string {
	if n, ok := v.GetValue().(*common.AnyValue_IntValue); ok {
		return strconv.FormatInt(n.IntValue, 10)
	}
	return v.GetStringValue()
}

func (s *server) takeOTLP(tenant string, of *otlp.ResourceProfiles, one *otlp.Profile, d *otlp.ProfilesDictionary) (err error) {
	defer func() { // an index beyond its table
		if wrong := recover(); wrong != nil {
			err = fmt.Errorf("invalid profile: %v", wrong)
		}
	}()
	at := time.Unix(0, int64(one.TimeUnixNano))
	if now := time.Now(); at.Before(now.Add(-s.limits.older)) || at.After(now.Add(s.limits.newer)) {
		return errors.New("profile is outside of ingestion window")
	}
	labels := []*pair{{Name: "__name__", Value: "process_cpu"}, {Name: "__otel__", Value: "true"}}
	for _, a := range of.GetResource().GetAttributes() {
		name := strings.ReplaceAll(a.Key, ".", "_")
		labels = append(labels, &pair{Name: name, Value: attributeText(a.Value)})
	}
	labels = withService(labels)
	if err := s.limits.checkLabels(labels); err != nil {
		return err
	}
	p, err := fromOTLP(one, d)
	if err != nil {
		return err
	}
	if err := s.store.add(tenant, labels, p, s.limits.maxNames); err != nil {
		return err
	}
	return s.journal.add(tenant, labels, p)
}

// fromOTLP has the real server's way with counted samples: their type is that
// of the period, their values are multiplied by it.
func fromOTLP(one *otlp.Profile, d *otlp.ProfilesDictionary) (*profile.Profile, error) {
	text := func(i int32) string { return d.StringTable[i] }
	kind := &profile.ValueType{Type: text(one.SampleType.TypeStrindex), Unit: text(one.SampleType.UnitStrindex)}
	period := &profile.ValueType{Type: text(one.PeriodType.TypeStrindex), Unit: text(one.PeriodType.UnitStrindex)}
	factor := int64(1)
	if kind.Type == "samples" && kind.Unit == "count" && period.Unit == "nanoseconds" {
		kind, factor = period, one.Period
	}
	p := &profile.Profile{SampleType: []*profile.ValueType{kind}, PeriodType: period, Period: one.Period,
		TimeNanos: int64(one.TimeUnixNano), DurationNanos: int64(one.DurationNano)}
	for i, m := range d.MappingTable[1:] {
		p.Mapping = append(p.Mapping, &profile.Mapping{ID: uint64(i + 1), File: text(m.FilenameStrindex)})
	}
	for i, f := range d.FunctionTable[1:] {
		p.Function = append(p.Function, &profile.Function{ID: uint64(i + 1), Name: text(f.NameStrindex)})
	}
	for i, l := range d.LocationTable[1:] {
		at := &profile.Location{ID: uint64(i + 1), Address: l.Address}
		if l.MappingIndex > 0 {
			at.Mapping = p.Mapping[l.MappingIndex-1]
		}
		for _, line := range l.Lines {
			at.Line = append(at.Line, profile.Line{Function: p.Function[line.FunctionIndex-1], Line: line.Line})
		}
		p.Location = append(p.Location, at)
	}
	for _, sample := range one.Samples {
		if len(sample.Values) != 1 {
			return nil, errors.New("a sample has not one value")
		}
		own := &profile.Sample{Value: []int64{sample.Values[0] * factor}, Label: map[string][]string{}}
		for _, at := range d.StackTable[sample.StackIndex].LocationIndices {
			own.Location = append(own.Location, p.Location[at-1])
		}
		for _, a := range sample.AttributeIndices {
			own.Label[text(d.AttributeTable[a].KeyStrindex)] = []string{attributeText(d.AttributeTable[a].Value)}
		}
		p.Sample = append(p.Sample, own)
	}
	return p, p.CheckValid()
}
