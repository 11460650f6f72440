//go:build linux

// Start: time to the first 200, idle memory, size of the binary and whether it is static.

package main

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"time"
)

func measureStart(ctx context.Context, b *bench) error {
	dir, err := b.workDir("start")
	if err != nil {
		return err
	}
	var health, answer []time.Duration
	var idle int64
	for i := range b.starts {
		h, a, rss, err := b.startOnce(ctx, dir, i == b.starts-1)
		if err != nil {
			return err
		}
		health, answer, idle = append(health, h), append(answer, a), rss
	}
	t := table{title: fmt.Sprintf("Start, %d times", b.starts), head: []string{"", "median", "slowest"}, rows: [][]string{
		{"first 200 of GET /health", millis(median(health)), millis(quantile(health, 1))},
		{"first chat completion", millis(median(answer)), millis(quantile(answer, 1))},
	}}
	if b.under == "kvasir" {
		t.notes = []string{"The built-in configuration (what `make run` serves), simulated workers included; from exec, the file being in the page cache after the first."}
	}
	b.report.add(t)
	slowest := quantile(health, 1)
	b.report.judge(verdict{"start to first 200", fmt.Sprintf("slowest %s; a whole chat completion %s", millis(slowest), millis(quantile(answer, 1))), "<= 0.5 s", slowest <= 500*time.Millisecond})
	b.report.judge(verdict{"idle resident memory", mebibytes(idle), "<= 80 MiB", idle <= 80<<20})
	if b.under != "kvasir" {
		return nil
	}
	size, static, err := inspect(b.kvasir)
	if err != nil {
		return err
	}
	kind := "static"
	if !static {
		kind = "needs a dynamic linker"
	}
	b.report.judge(verdict{"binary", kind + ", " + mebibytes(size), "static", static})
	return nil
}

// startOnce measures one start: the time until /health is good, and until the first answer. If
// settle is set, it measures the idle memory too.
func (b *bench) startOnce(ctx context.Context, dir string, settle bool) (health, answer time.Duration, idle int64, err error) {
	proc, address, model, err := b.startDefault(dir)
	if err != nil {
		return 0, 0, 0, err
	}
	defer proc.stop()
	err = proc.ready(ctx, 10*time.Second, time.Millisecond, func() error { return want200(get(address, "/health")) })
	if err != nil {
		return 0, 0, 0, err
	}
	health = time.Since(proc.started)
	err = proc.ready(ctx, 10*time.Second, time.Millisecond, func() error {
		status, text, err := post(address, chat(model, false, 4))
		return want200(status, []byte(text), err)
	})
	if err != nil {
		return 0, 0, 0, err
	}
	answer = time.Since(proc.started)
	if settle {
		idle, err = proc.settledRSS(ctx, 2*time.Second, 10*time.Second)
	}
	return health, answer, idle, err
}

func want200(status int, text []byte, err error) error {
	if err == nil && status != 200 {
		err = fmt.Errorf("status %d: %.200s", status, text)
	}
	return err
}

// startDefault starts kvasir as `make run` does, but on other ports; with -under nginx it starts
// an nginx that answers by itself. model is a model that can be asked there.
func (b *bench) startDefault(dir string) (proc *process, address, model string, err error) {
	if address, err = freeAddress(); err != nil {
		return nil, "", "", err
	}
	if b.under == "nginx" {
		proc, err = startNginx(dir, "nginx-start", workerConfig(address))
		return proc, address, modelPlain, err
	}
	admin, err := freeAddress()
	if err != nil {
		return nil, "", "", err
	}
	proc, err = startProcess(dir, "kvasir", []string{"KVASIR_SERVER_LISTEN=" + address, "KVASIR_SERVER_ADMIN=" + admin}, b.kvasir, "serve")
	return proc, address, "auto", err
}

// inspect returns the size of a binary and whether it runs without a dynamic linker.
func inspect(path string) (size int64, static bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false, fmt.Errorf("cannot inspect binary: %w", err)
	}
	file, err := elf.Open(path)
	if err != nil {
		return 0, false, fmt.Errorf("cannot inspect binary %q: %w", path, err)
	}
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return 0, false, fmt.Errorf("cannot inspect binary %q: %w", path, err)
	}
	static = len(libraries) == 0
	for _, segment := range file.Progs {
		static = static && segment.Type != elf.PT_INTERP
	}
	return info.Size(), static, nil
}
