// SPDX-License-Identifier: Apache-2.0

// The Collector's own checks of a component, and what its contract asks of a receiver: an error that
// is permanent drops a batch, another one has it offered again.
//
// TEST_LIBRARY, TEST_PLUGINS, ANDIRON: libandiron.so, the folders of plugins, and the command, where
// they are not installed.
package andironreceiver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	andiron "andiron/host-abi/bindings/go"
)

const (
	silent  = `embed.profiles "collector" {}`
	sampled = `pyroscope.ebpf "self" {
  forward_to       = [embed.profiles.collector.receiver]
  targets_only     = true
  targets          = [{"__process_pid__" = "%d", "service_name" = "itself"}]
  sample_rate      = 499
  collect_interval = "1s"
}
embed.profiles "collector" {}
`
)

func configOf(t *testing.T, text string) *Config {
	c := NewFactory().CreateDefaultConfig().(*Config)
	c.Config = text
	c.Library, c.Worker = os.Getenv("TEST_LIBRARY"), os.Getenv("ANDIRON")
	c.Plugins = filepath.SplitList(os.Getenv("TEST_PLUGINS"))
	if _, err := andiron.Version(c.Library); errors.Is(err, syscall.ENOENT) {
		t.Skip(err)
	}
	return c
}

func create(t *testing.T, c *Config, next xconsumer.Profiles) xreceiver.Profiles {
	factory := NewFactory().(xreceiver.Factory)
	r, err := factory.CreateProfiles(context.Background(), receivertest.NewNopSettings(factory.Type()), c, next)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func expectNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Nothing of andiron's is left in the process. A thread that Go made in a callback has its parent's
// name, but blocks no signals.
func expectNoThreads(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var left []string
		threads, err := filepath.Glob("/proc/self/task/*/status")
		expectNil(t, err)
		for _, path := range threads {
			status, _ := os.ReadFile(path)
			name, rest, _ := strings.Cut(string(status), "\n")
			if strings.HasPrefix(name, "Name:\tandiron") && !strings.Contains(rest, "SigBlk:\t0000000000000000") {
				left = append(left, name)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal(left)
		}
	}
}

func TestConfigStruct(t *testing.T) {
	factory := NewFactory()
	expectNil(t, componenttest.CheckConfigStruct(factory.CreateDefaultConfig()))
	if factory.Type().String() != "andiron" {
		t.Fatal(factory.Type())
	}
	for _, c := range []Config{{}, {Config: silent, ConfigFile: "x"}} {
		if c.Validate() == nil {
			t.Fatal(c)
		}
	}
	expectNil(t, (&Config{ConfigFile: "x"}).Validate())
}

// The steps of the Collector's generated component tests.
func TestLifecycle(t *testing.T) {
	c := configOf(t, silent)
	t.Run("shutdown", func(t *testing.T) {
		expectNil(t, create(t, c, consumertest.NewNop()).Shutdown(context.Background()))
	})
	t.Run("lifecycle", func(t *testing.T) {
		for range 2 {
			r := create(t, c, consumertest.NewNop())
			expectNil(t, r.Start(context.Background(), componenttest.NewNopHost()))
			expectNil(t, r.Shutdown(context.Background()))
			expectNil(t, r.Shutdown(context.Background()))
		}
	})
	t.Run("two at a time", func(t *testing.T) {
		r, other := create(t, c, consumertest.NewNop()), create(t, c, consumertest.NewNop())
		expectNil(t, r.Start(context.Background(), componenttest.NewNopHost()))
		expectNil(t, other.Start(context.Background(), componenttest.NewNopHost()))
		expectNil(t, r.Shutdown(context.Background()))
		expectNil(t, other.Shutdown(context.Background()))
	})
	expectNoThreads(t)
}

func TestStartIsRefused(t *testing.T) {
	for text, words := range map[string][]string{
		"pyroscope.ebpf \"e\" {\n sample_rat = 9 }": {" config:2:2: error", `no argument "sample_rat"`},
		`discovery.process "all" {}`:                {`embed.profiles "collector" {}`, "embed.profiles.collector.receiver"},
		silent + "\n" + `embed.profiles "b" {}`:     {"registered nobody"},
	} {
		err := create(t, configOf(t, text), consumertest.NewNop()).Start(context.Background(), componenttest.NewNopHost())
		for _, word := range words {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Fatalf("no %q in %v", word, err)
			}
		}
	}
	c := configOf(t, "")
	c.ConfigFile = "nowhere.alloy"
	err := create(t, c, consumertest.NewNop()).Start(context.Background(), componenttest.NewNopHost())
	if !errors.Is(err, syscall.ENOENT) || !strings.Contains(err.Error(), "nowhere.alloy") {
		t.Fatal(err)
	}
	expectNoThreads(t)
}

// A pipeline that gives these errors, and nil after them.
type pipeline struct {
	xconsumer.Profiles
	sync.Mutex
	errors []error
	ids    []pprofile.ProfileID
	names  map[string]bool
}

func (p *pipeline) ConsumeProfiles(_ context.Context, profiles pprofile.Profiles) error {
	p.Lock()
	defer p.Unlock()
	p.ids = append(p.ids, profiles.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).ProfileID())
	for _, f := range profiles.Dictionary().FunctionTable().All() {
		p.names[profiles.Dictionary().StringTable().At(int(f.NameStrindex()))] = true
	}
	profiles.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { return true })
	if len(p.errors) == 0 {
		return nil
	}
	err := p.errors[0]
	p.errors = p.errors[1:]
	return err
}

//go:noinline
func work(until func() bool) (sum float64) {
	for !until() {
		for i := range 1_000_000 {
			sum += math.Sqrt(float64(i))
		}
	}
	return sum
}

func prepare(t *testing.T, p *pipeline) {
	if os.Geteuid() != 0 {
		t.Skip("sampling needs root")
	}
	p.Profiles, p.names = consumertest.NewNop(), map[string]bool{}
}

// The batch that is refused for now comes again, whole; the one that is refused for good does not.
func TestErrorsOfThePipeline(t *testing.T) {
	p := &pipeline{errors: []error{
		errors.New("not now"), errors.New("nor now"), nil, consumererror.NewPermanent(errors.New("never")),
	}}
	prepare(t, p)
	r := create(t, configOf(t, fmt.Sprintf(sampled, os.Getpid())), p)
	expectNil(t, r.Start(context.Background(), componenttest.NewNopHost()))
	end := time.Now().Add(time.Minute)
	work(func() bool {
		p.Lock()
		defer p.Unlock()
		return len(p.ids) > 5 || time.Now().After(end)
	})
	expectNil(t, r.Shutdown(context.Background()))
	expectNoThreads(t)
	if len(p.ids) < 6 || p.ids[0] != p.ids[1] || p.ids[0] != p.ids[2] {
		t.Fatal(p.ids)
	}
	seen := map[pprofile.ProfileID]bool{}
	for _, id := range p.ids[2:] {
		if seen[id] {
			t.Fatal(p.ids)
		}
		seen[id] = true
	}
	found := false
	for name := range p.names {
		found = found || strings.HasSuffix(name, ".work")
	}
	if !found {
		t.Fatal(p.names)
	}
}

// A pipeline that never takes anything does not hold up a shutdown.
func TestShutdownOfAFullPipeline(t *testing.T) {
	p := &pipeline{}
	for range 1000 {
		p.errors = append(p.errors, errors.New("full"))
	}
	prepare(t, p)
	r := create(t, configOf(t, fmt.Sprintf(sampled, os.Getpid())), p)
	expectNil(t, r.Start(context.Background(), componenttest.NewNopHost()))
	end := time.Now().Add(time.Minute)
	work(func() bool {
		p.Lock()
		defer p.Unlock()
		return len(p.ids) > 2 || time.Now().After(end)
	})
	expectNil(t, r.Shutdown(context.Background()))
	expectNoThreads(t)
	if len(p.ids) < 3 {
		t.Fatal(p.ids)
	}
}
