// SPDX-License-Identifier: Apache-2.0

// kubernetes-oracle says what Prometheus's own Kubernetes discovery makes of a
// cluster. Its argument is a JSON object of names and discovery
// configurations; for each line on standard input it writes one line, the
// targets that each of them has at that moment: {"NAME": [{label: value}]}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v2"

	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// groups are the target groups of one discovery, by their source: a group that
// comes again replaces the one before.
type groups struct {
	sync.Mutex
	bySource map[string]*targetgroup.Group
}

func (g *groups) follow(ch <-chan []*targetgroup.Group) {
	for update := range ch {
		g.Lock()
		for _, group := range update {
			if group != nil {
				g.bySource[group.Source] = group
			}
		}
		g.Unlock()
	}
}

// targets are label sets as relabeling would see them: a target's own labels
// before its group's, and an empty value is none.
func (g *groups) targets() []map[string]string {
	g.Lock()
	defer g.Unlock()
	found := []map[string]string{}
	for _, group := range g.bySource {
		for _, target := range group.Targets {
			merged := map[string]string{}
			for _, labels := range []model.LabelSet{group.Labels, target} {
				for name, value := range labels {
					merged[string(name)] = string(value)
				}
			}
			for name, value := range merged {
				if value == "" {
					delete(merged, name)
				}
			}
			found = append(found, merged)
		}
	}
	return found
}

func start(ctx context.Context, name string, raw json.RawMessage, logger *slog.Logger) (*groups, error) {
	var config kubernetes.SDConfig
	if err := yaml.UnmarshalStrict(raw, &config); err != nil { // JSON is YAML
		return nil, err
	}
	registry := prometheus.NewRegistry()
	metrics := config.NewDiscovererMetrics(registry, discovery.NewRefreshMetrics(registry))
	if err := metrics.Register(); err != nil {
		return nil, err
	}
	discoverer, err := config.NewDiscoverer(discovery.DiscovererOptions{Logger: logger, Metrics: metrics, SetName: name})
	if err != nil {
		return nil, err
	}
	g := &groups{bySource: map[string]*targetgroup.Group{}}
	ch := make(chan []*targetgroup.Group)
	go discoverer.Run(ctx, ch)
	go g.follow(ch)
	return g, nil
}

func run(argument string, in io.Reader, out io.Writer) error {
	var configs map[string]json.RawMessage
	if err := json.Unmarshal([]byte(argument), &configs); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	all := map[string]*groups{}
	for name, raw := range configs {
		g, err := start(context.Background(), name, raw, logger)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all[name] = g
	}
	lines, encoder := bufio.NewScanner(in), json.NewEncoder(out)
	for lines.Scan() {
		answer := map[string][]map[string]string{}
		for name, g := range all {
			answer[name] = g.targets()
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kubernetes-oracle CONFIGS")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
