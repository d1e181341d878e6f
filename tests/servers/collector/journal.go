// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// A journal is an exporter that keeps every message that reaches it: a line each in
// base64, the message as it would be sent on. It is written before the pipeline, and
// with it the sender, has its answer.
type journal struct {
	component.StartFunc
	component.ShutdownFunc
	mu   sync.Mutex
	path string
}

type journalConfig struct {
	Path string `mapstructure:"path"`
}

func newJournalFactory() exporter.Factory {
	kind := component.MustNewType("journal")
	return xexporter.NewFactory(kind, func() component.Config { return &journalConfig{} },
		xexporter.WithProfiles(func(_ context.Context, _ exporter.Settings, c component.Config) (xexporter.Profiles, error) {
			return &journal{path: c.(*journalConfig).Path}, nil
		}, component.StabilityLevelDevelopment))
}

func (j *journal) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (j *journal) ConsumeProfiles(_ context.Context, p pprofile.Profiles) error {
	message, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(p)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	file, err := os.OpenFile(j.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintln(file, base64.StdEncoding.EncodeToString(message))
	return err
}
