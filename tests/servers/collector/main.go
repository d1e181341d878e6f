// SPDX-License-Identifier: Apache-2.0

// Collector is an OpenTelemetry Collector for tests, of the parts that profiles
// pass through in a cluster: the otlp receiver and andiron's, the k8sattributes processor, the
// exporters of OTLP over HTTP and gRPC, and one that keeps what arrived. It is run as any Collector is:
//
//	collector --config=FILE --feature-gates=service.profilesSupport
//
// Everything but the last one and andiron's receiver is OpenTelemetry's own, as pinned in go.mod.
// That receiver loads libandiron where a configuration has it, and nothing otherwise.
package main

import (
	"log"

	andironreceiver "andiron/host-abi/agents/collector"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/k8sattributesprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func parts() (otelcol.Factories, error) {
	kept, attributes := newJournalFactory(), k8sattributesprocessor.NewFactory()
	otlp, andiron := otlpreceiver.NewFactory(), andironreceiver.NewFactory()
	web, rpc := otlphttpexporter.NewFactory(), otlpexporter.NewFactory()
	return otelcol.Factories{
		Receivers:  map[component.Type]receiver.Factory{otlp.Type(): otlp, andiron.Type(): andiron},
		Processors: map[component.Type]processor.Factory{attributes.Type(): attributes},
		Exporters:  map[component.Type]exporter.Factory{kept.Type(): kept, web.Type(): web, rpc.Type(): rpc},
		Telemetry:  otelconftelemetry.NewFactory(),
	}, nil
}

func main() {
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Description: "OpenTelemetry Collector for andiron's tests", Version: "1"},
		Factories: parts,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()}, DefaultScheme: "file",
		}},
	})
	if err := command.Execute(); err != nil {
		log.Fatal(err)
	}
}
