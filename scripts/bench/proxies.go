//go:build linux

// The ways to a worker that are compared: direct, a bare relay, nginx, Kvasir, vllm-router.

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// way is one way to reach a worker. proc is nil for the direct one.
type way struct {
	name    string
	address string
	admin   string      // address of Kvasir's /metrics
	secure  *tls.Config // non-nil: address speaks TLS
	proc    *process
}

func (w *way) stop() {
	if w.proc != nil {
		w.proc.stop()
	}
}

// cpu is the processor time that the way's processes have used so far; 0: it has none.
func (w *way) cpu() (time.Duration, error) {
	if w.proc == nil {
		return 0, nil
	}
	return w.proc.cpu()
}

func stopAll(ways []*way) {
	for _, w := range ways {
		w.stop()
	}
}

// find returns the way of that name, or nil.
func find(ways []*way, name string) *way {
	for _, w := range ways {
		if w.name == name {
			return w
		}
	}
	return nil
}

// startWays starts the named ways to worker; none is left running on an error.
func (b *bench) startWays(ctx context.Context, dir, worker string, names ...string) ([]*way, error) {
	var ways []*way
	for _, name := range names {
		w, err := b.startWay(ctx, dir, worker, name)
		if err == nil {
			ways = append(ways, w)
			err = w.accepts(ctx)
		}
		if err != nil {
			stopAll(ways)
			return nil, err
		}
	}
	return ways, nil
}

const (
	wayDirect = "direct"
	wayRelay  = "TCP relay"
	wayBare   = "bare fasthttp"
	wayNginx  = "nginx"
	wayRouter = "vllm-router"
)

func (b *bench) startWay(ctx context.Context, dir, worker, name string) (*way, error) {
	if name == wayDirect {
		return &way{name: name, address: worker}, nil
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	w := &way{name: name, address: address}
	switch name {
	case wayRelay:
		w.proc, err = startSelf(dir, "relay", "-listen", address, "-to", worker)
	case wayBare:
		w.proc, err = startSelf(dir, "bare", "-listen", address, "-to", worker)
	case wayNginx:
		w.proc, err = startNginx(dir, "nginx-proxy", proxyConfig(address, worker, filepath.Base(dir) == "throughput"))
	case wayRouter:
		w.proc, err = b.startRouter(ctx, dir, address, worker)
	case b.subject():
		w.proc, w.admin, err = b.startSubject(dir, address, worker, nil)
	default:
		panic("BUG: no such way: " + name)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// accepts waits until one whole answer has come through the way.
func (w *way) accepts(ctx context.Context) error {
	probe := func() error {
		status, text, err := post(w.address, chat(modelPlain, false, 16))
		if err != nil {
			return err
		}
		if status != 200 || text != completion {
			return fmt.Errorf("asked through %s: status %d, %d bytes: %.200s", w.name, status, len(text), text)
		}
		return nil
	}
	if w.proc == nil {
		return probe()
	}
	return w.proc.ready(ctx, 20*time.Second, 20*time.Millisecond, probe)
}

// subject is the name of what is under test.
func (b *bench) subject() string {
	if b.under == "nginx" {
		return "nginx again"
	}
	return "kvasir"
}

// certificate names the files of a TLS key pair.
type certificate struct{ cert, key string }

// startSubject starts what is under test and returns its admin address, if any.
func (b *bench) startSubject(dir, address, worker string, secure *certificate) (*process, string, error) {
	if b.under == "nginx" {
		config := proxyConfig(address, worker, filepath.Base(dir) == "throughput")
		if secure != nil {
			config = strings.Replace(config, "reuseport", "reuseport ssl", 1)
			config = strings.Replace(config, "location /", fmt.Sprintf("ssl_certificate %s; ssl_certificate_key %s;\nlocation /", secure.cert, secure.key), 1)
		}
		p, err := startNginx(dir, "nginx-again", config)
		return p, "", err
	}
	admin, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	file := filepath.Join(dir, "kvasir.yaml")
	if err := os.WriteFile(file, []byte(kvasirConfig(address, admin, worker, secure)), 0o644); err != nil {
		return nil, "", fmt.Errorf("cannot write config: %w", err)
	}
	p, err := startProcess(dir, "kvasir", nil, b.kvasir, "serve", "--config", file)
	return p, admin, err
}

// kvasirConfig has every feature switched off and no deadline that could end a measurement;
// everything else has its default.
func kvasirConfig(address, admin, worker string, secure *certificate) string {
	var tls string
	if secure != nil {
		tls = fmt.Sprintf("\n  tls: {cert: %q, key: %q}", secure.cert, secure.key)
	}
	return fmt.Sprintf(`server:
  listen: %s
  admin: %s
  timeouts: {first_byte: 10m, idle: 10m, write: 10m}%s
workers:
  - {name: a, url: "http://%s"}
routing: {policy: round_robin, disaggregate: never}
classify: {jailbreak: {action: "off"}, pii: {action: "off"}}
cache: {store: "off"}
gpu: {mode: "off"}
log: {level: warn}
`, address, admin, tls, worker)
}

// startSelf starts a helper process: this binary with a subcommand.
func startSelf(dir, role string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", role, err)
	}
	return startProcess(dir, role, nil, append([]string{self, role}, args...)...)
}

// startWorker starts the worker of the stream and memory measurements.
func startWorker(ctx context.Context, dir string) (*way, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	w := &way{name: "worker", address: address}
	if w.proc, err = startSelf(dir, "worker", "-listen", address); err != nil {
		return nil, err
	}
	if err := w.accepts(ctx); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// workDir is an empty directory for one measurement.
func (b *bench) workDir(name string) (string, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("cannot clear %q: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot make %q: %w", dir, err)
	}
	return dir, nil
}
