// SPDX-License-Identifier: Apache-2.0

// Package andironreceiver is andiron as a receiver of the OpenTelemetry Collector: it profiles by
// libandiron within the Collector's process, and hands on the profiles signal. Without cgo.
package andironreceiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"
)

// Config is what stands below `receivers: {andiron: …}`.
type Config struct {
	// An andiron configuration, or the path of one, or of a folder of *.alloy files. What is to
	// reach the Collector is forwarded to embed.profiles.collector.receiver.
	Config     string `mapstructure:"config"`
	ConfigFile string `mapstructure:"config_file"`

	// Where the parts are, unless they are installed: libandiron.so.1, folders of plugins, and the
	// `andiron` that parses files in a sandbox.
	Library string   `mapstructure:"library"`
	Plugins []string `mapstructure:"plugins"`
	Worker  string   `mapstructure:"worker"`
}

// Validate is called by the Collector before anything starts.
func (c *Config) Validate() error {
	if c.Config == "" && c.ConfigFile == "" {
		return errors.New("there is nothing to run: give an andiron configuration as `config`, or its path as `config_file`")
	}
	if c.Config != "" && c.ConfigFile != "" {
		return errors.New("both `config` and `config_file` are given: leave one out")
	}
	return nil
}

// NewFactory makes receivers of the type "andiron".
func NewFactory() receiver.Factory {
	return xreceiver.NewFactory(component.MustNewType("andiron"),
		func() component.Config { return &Config{} },
		xreceiver.WithProfiles(newProfiles, component.StabilityLevelDevelopment))
}

func newProfiles(_ context.Context, set receiver.Settings, config component.Config, next xconsumer.Profiles) (xreceiver.Profiles, error) {
	return newReceiver(set, config.(*Config), next)
}
