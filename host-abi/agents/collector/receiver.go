// SPDX-License-Identifier: Apache-2.0

package andironreceiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	andiron "andiron/host-abi/bindings/go"
)

const (
	// As it is called in the configuration: embed.profiles "collector".
	consumerName = "collector"

	// Within Shutdown, what is under way is delivered; the Collector gives no deadline of its own.
	longestStop = 10 * time.Second

	// A pipeline that is full for so long has its batch dropped. Meanwhile those behind it wait in
	// libandiron's queue, which is bounded.
	longestRetry = time.Minute
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// One instance of andiron, from Start to Shutdown. The pipeline is called on andiron's worker
// thread: so a pipeline that is slow fills a queue that is bounded and counted, and no other.
type profilesReceiver struct {
	set    receiver.Settings
	config *Config
	next   xconsumer.Profiles
	report *receiverhelper.ObsReport
	resource

	agent    *andiron.Agent
	calls    context.Context // of calls of the pipeline
	cancel   context.CancelFunc
	stopping chan struct{} // no batch is tried again
	encoded  sync.Once
}

func newReceiver(set receiver.Settings, config *Config, next xconsumer.Profiles) (*profilesReceiver, error) {
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: "libandiron", LongLivedCtx: true, ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, err
	}
	return &profilesReceiver{set: set, config: config, next: next, report: report, resource: newResource()}, nil
}

// Start returns when all components of the configuration run. One that cannot is an error: nobody
// would miss its profiles.
func (r *profilesReceiver) Start(context.Context, component.Host) error {
	agent, err := andiron.Open(r.options())
	if err != nil {
		return err
	}
	r.calls, r.cancel = context.WithCancel(context.Background())
	r.stopping = make(chan struct{})
	if err = r.begin(agent); err != nil {
		r.cancel()
		return errors.Join(err, agent.Close())
	}
	r.agent = agent
	return nil
}

func (r *profilesReceiver) options() andiron.Options {
	o := andiron.Options{
		Library:    r.config.Library,
		PluginDirs: r.config.Plugins,
		Worker:     r.config.Worker,
		Log:        r.log,
		Report:     func(err error) { r.set.Logger.Warn("a batch of profiles was dropped", zap.Error(err)) },
	}
	for level := andiron.LevelError; level <= andiron.LevelDebug; level++ {
		if r.set.Logger.Core().Enabled(zapLevel(level)) {
			o.LogLevel = level
		}
	}
	return o
}

func (r *profilesReceiver) begin(agent *andiron.Agent) error {
	if err := agent.OnBatches(consumerName, r.take); err != nil {
		return err
	}
	warnings, err := r.load(agent)
	if err != nil {
		return err
	}
	if warnings != "" {
		r.set.Logger.Warn(warnings)
	}
	if err := agent.Start(); err != nil {
		return err
	}
	return isConnected(agent)
}

func (r *profilesReceiver) load(agent *andiron.Agent) (string, error) {
	if r.config.ConfigFile != "" {
		return agent.LoadFile(r.config.ConfigFile)
	}
	return agent.Load(r.set.ID.String()+" config", r.config.Config)
}

// A configuration that forwards nothing to the Collector would run for nothing.
func isConnected(agent *andiron.Agent) error {
	text, err := agent.Ledger()
	if err != nil {
		return err
	}
	var ledger struct{ Writers map[string]any }
	if err := json.Unmarshal([]byte(text), &ledger); err != nil {
		return err
	}
	if _, ok := ledger.Writers["embed.profiles."+consumerName]; !ok {
		return fmt.Errorf("the configuration hands no profiles to the Collector: add `embed.profiles %q {}`, "+
			"and forward to embed.profiles.%s.receiver", consumerName, consumerName)
	}
	return nil
}

// Shutdown delivers what is queued, as far as the pipeline takes it in time.
func (r *profilesReceiver) Shutdown(ctx context.Context) error {
	if r.agent == nil {
		return nil
	}
	agent := r.agent
	r.agent = nil
	close(r.stopping)
	ctx, end := context.WithTimeout(ctx, longestStop)
	defer end()
	defer r.cancel()
	defer context.AfterFunc(ctx, r.cancel)()
	deadline, _ := ctx.Deadline()
	err := agent.Stop(time.Until(deadline))
	if errors.Is(err, syscall.ETIMEDOUT) {
		r.set.Logger.Warn("not all profiles were handed on", zap.Error(err))
		err = nil
	}
	return errors.Join(err, agent.Close())
}

// Of any thread of andiron's.
func (r *profilesReceiver) log(level andiron.Level, part, line string) {
	r.set.Logger.Log(zapLevel(level), line, zap.String("andiron.component", part))
}

func zapLevel(level andiron.Level) zapcore.Level {
	return [...]zapcore.Level{zap.ErrorLevel, zap.WarnLevel, zap.InfoLevel, zap.DebugLevel}[min(level, andiron.LevelDebug)]
}

// An error drops the batch, which the ledger then counts as refused.
func (r *profilesReceiver) take(b *andiron.Batch) error {
	if n := b.Count(andiron.Encodeds); n > 0 {
		r.encoded.Do(func() {
			r.set.Logger.Warn("profiles that others have encoded (pyroscope.scrape, pyroscope.receive_http) " +
				"are not handed on: forward them to an otlp.write that sends to the Collector's otlp receiver")
		})
		if b.Count(andiron.Rows) == 0 {
			return fmt.Errorf("%d encoded profiles", n)
		}
	}
	op := r.report.StartProfilesOp(r.calls)
	samples, err := r.deliver(op, b)
	r.report.EndProfilesOp(op, "andiron", samples, err)
	return err
}

// A pipeline may change what it gets, also where it then refuses it: so each attempt has its own.
func (r *profilesReceiver) deliver(op context.Context, b *andiron.Batch) (samples int, err error) {
	end := time.Now().Add(longestRetry)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		profiles := r.convert(b)
		samples = profiles.SampleCount()
		if samples == 0 {
			return 0, nil
		}
		err = r.next.ConsumeProfiles(op, profiles)
		if err == nil || consumererror.IsPermanent(err) || time.Now().After(end) {
			return samples, err
		}
		select {
		case <-time.After(pause):
		case <-r.stopping:
			return samples, err
		}
	}
}
