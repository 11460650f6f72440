//go:build linux

// vllm-router, the Rust router of the vLLM project: installed once, pinned, started as its users start it.

package main

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed requirements.txt
var requirements string

// routerBinary installs vllm-router into a virtual environment under the directory of the bench,
// unless exactly this list of packages is installed there already.
func (b *bench) routerBinary(ctx context.Context) (string, error) {
	venv := filepath.Join(b.dir, "vllm-router")
	binary := filepath.Join(venv, "bin", "vllm-router")
	list := filepath.Join(venv, "requirements.txt") // written last: a broken installation is made anew
	if have, err := os.ReadFile(list); err == nil && string(have) == requirements {
		return binary, nil
	}
	b.say("installing vllm-router 0.1.17 into %s", venv)
	if err := os.RemoveAll(venv); err != nil {
		return "", fmt.Errorf("cannot clear %q: %w", venv, err)
	}
	if err := quietly(ctx, "python3", "-m", "venv", venv); err != nil {
		return "", fmt.Errorf("cannot make a virtual environment (apt-get install python3-venv?): %w", err)
	}
	staged := filepath.Join(venv, "wanted.txt")
	if err := os.WriteFile(staged, []byte(requirements), 0o644); err != nil {
		return "", fmt.Errorf("cannot write requirements: %w", err)
	}
	if err := quietly(ctx, filepath.Join(venv, "bin", "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes", "--only-binary", ":all:", "-r", staged); err != nil {
		return "", fmt.Errorf("cannot install vllm-router (bench -peer=false goes without): %w", err)
	}
	return binary, os.Rename(staged, list)
}

func quietly(ctx context.Context, argv ...string) error {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out[max(0, len(out)-600):])
	}
	return nil
}

// startRouter starts vllm-router with round robin and a log of errors only; everything else has
// its defaults.
func (b *bench) startRouter(ctx context.Context, dir, address, worker string) (*process, error) {
	binary, err := b.routerBinary(ctx)
	if err != nil {
		return nil, err
	}
	metrics, err := freeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	_, metricsPort, err := net.SplitHostPort(metrics)
	if err != nil {
		return nil, err
	}
	return startProcess(dir, "vllm-router", nil, binary, "--host", host, "--port", port, "--worker-urls", "http://"+worker,
		"--policy", "round_robin", "--log-level", "error", "--prometheus-port", metricsPort)
}
