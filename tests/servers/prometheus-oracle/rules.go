// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// Series have a sample a minute, and rules are evaluated as often.
const step = time.Minute

var expressions = parser.NewParser(parser.Options{})

// metrics names the metrics that an expression reads. One that is not named is
// an error: nobody could say whether it exists.
func metrics(text string) ([]string, error) {
	expr, err := expressions.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	names := []string{}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			names = append(names, selector.Name)
		}
		return nil
	})
	if len(names) == 0 || slices.Contains(names, "") {
		return nil, fmt.Errorf("%q does not name its metrics", text)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// answerExpressions answers each line, an expression, with its metrics.
func answerExpressions(in io.Reader, out io.Writer) error {
	return lines(in, func(line string) error {
		names, err := metrics(line)
		fmt.Fprintln(out, strings.Join(names, " "))
		return err
	})
}

// loadRules reads a file of rules as Prometheus does when it starts.
func loadRules(path string) ([]rulefmt.Rule, error) {
	groups, wrong := rulefmt.ParseFile(path, false, model.UTF8Validation, expressions, slog.Default())
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	rules := []rulefmt.Rule{}
	for _, group := range groups.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules, nil
}

type ruleSummary struct {
	Alert       string            `json:"alert"`
	Metrics     []string          `json:"metrics"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func listRules(path string, out io.Writer) error {
	rules, err := loadRules(path)
	if err != nil {
		return err
	}
	summaries := []ruleSummary{}
	for _, rule := range rules {
		names, err := metrics(rule.Expr)
		if err != nil {
			return err
		}
		summaries = append(summaries, ruleSummary{rule.Alert, names, rule.Labels, rule.Annotations})
	}
	return json.NewEncoder(out).Encode(summaries)
}

// database holds the series of one case.
type database []promql.Series

func (d *database) add(line string) error {
	metric, values, err := expressions.ParseSeriesDesc(line)
	if err != nil {
		return err
	}
	series := promql.Series{Metric: metric}
	for i, value := range values {
		if !value.Omitted {
			at := time.Duration(i) * step
			series.Floats = append(series.Floats, promql.FPoint{T: at.Milliseconds(), F: value.Value})
		}
	}
	*d = append(*d, series)
	return nil
}

func (d database) end() (end int64) {
	for _, series := range d {
		if n := len(series.Floats); n > 0 {
			end = max(end, series.Floats[n-1].T)
		}
	}
	return end
}

// seriesSet goes through series, one a Next.
type seriesSet struct {
	at   storage.Series
	rest []storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.at, s.rest = s.rest[0], s.rest[1:]
	return true
}

func (s *seriesSet) At() storage.Series              { return s.at }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }

func (d database) find(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &seriesSet{}
	for _, series := range d {
		fits := func(m *labels.Matcher) bool { return m.Matches(series.Metric.Get(m.Name)) }
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !fits(m) }) {
			found.rest = append(found.rest, promql.NewStorageSeries(series))
		}
	}
	return found
}

// fires tells for which labels a rule fires at the end of the series: as a
// server does, once its expression has had an answer for as long as `for` says.
func fires(engine *promql.Engine, d database, rule rulefmt.Rule) ([]string, error) {
	querier := &storage.MockQuerier{SelectMockFunction: d.find}
	since := map[string]int64{}
	for now := int64(0); now <= d.end(); now += step.Milliseconds() {
		ctx, at := context.Background(), time.UnixMilli(now)
		query, err := engine.NewInstantQuery(ctx, &storage.MockQueryable{MockQuerier: querier}, nil, rule.Expr, at)
		if err != nil {
			return nil, err
		}
		vector, err := query.Exec(ctx).Vector()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rule.Alert, err)
		}
		before := since
		since = map[string]int64{}
		for _, sample := range vector {
			key := labels.NewBuilder(sample.Metric).Del(labels.MetricName).Labels().String()
			if _, twice := since[key]; twice {
				return nil, fmt.Errorf("%s: %s comes twice", rule.Alert, key)
			}
			since[key] = now
			if first, pending := before[key]; pending {
				since[key] = first
			}
		}
		query.Close()
	}
	firing := []string{}
	for key, first := range since {
		if d.end()-first >= time.Duration(rule.For).Milliseconds() {
			firing = append(firing, rule.Alert+key)
		}
	}
	slices.Sort(firing)
	return firing, nil
}

// answerFired takes cases, each a line "== NAME" and lines of series, and
// answers each with a line: its name and what fires at its end.
func answerFired(path string, in io.Reader, out io.Writer) error {
	rules, err := loadRules(path)
	if err != nil {
		return err
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1 << 24, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: expressions,
	})
	w := bufio.NewWriter(out)
	defer w.Flush()
	name, d := "", database{}
	answer := func() error {
		if name == "" {
			return nil
		}
		fmt.Fprint(w, name, ":")
		for _, rule := range rules {
			firing, err := fires(engine, d, rule)
			if err != nil {
				return err
			}
			for _, alert := range firing {
				fmt.Fprint(w, " ", alert)
			}
		}
		fmt.Fprintln(w)
		return nil
	}
	err = lines(in, func(line string) error {
		next, isName := strings.CutPrefix(line, "== ")
		if !isName {
			return d.add(line)
		}
		err := answer()
		name, d = next, database{}
		return err
	})
	return errors.Join(err, answer())
}

func runRules(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "rules":
		return listRules(args[1], os.Stdout)
	case len(args) == 1 && args[0] == "expressions":
		return answerExpressions(os.Stdin, os.Stdout)
	case len(args) == 2 && args[0] == "fired":
		return answerFired(args[1], os.Stdin, os.Stdout)
	}
	return errUsage
}
