// Tests of deploy/ and scripts/docker: that the Dockerfile and the compose file fit the program and each other. What needs a Docker daemon
// stands in e2e/real_image_test.go.

package main

import (
	"bufio"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"kvasir/config"
)

// A composeFile is what the tests look at of deploy/compose.yaml.
type composeFile struct {
	Services map[string]composeService `yaml:"services"`
	Volumes  map[string]any            `yaml:"volumes"`
}

type composeService struct {
	Image, Build any
	Volumes      []string
	Ports        []string
	ReadOnly     bool                         `yaml:"read_only"`
	DependsOn    map[string]map[string]string `yaml:"depends_on"`
	Healthcheck  struct{ Test []string }
	Grace        time.Duration `yaml:"stop_grace_period"`
	Deploy       struct {
		Resources struct {
			Reservations struct {
				Devices []struct {
					Driver       string
					Capabilities []string
				}
			}
		}
	}
}

func readCompose(t *testing.T) composeFile {
	t.Helper()
	text, err := os.ReadFile("deploy/compose.yaml")
	do(t, err)
	var f composeFile
	do(t, yaml.Unmarshal(text, &f))
	return f
}

// imageVariables are the KVASIR_* variables of deploy/Dockerfile.
func imageVariables(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("deploy/Dockerfile")
	do(t, err)
	all := regexp.MustCompile(`KVASIR_[A-Z_]+=\S+`).FindAllString(string(text), -1)
	if len(all) == 0 {
		t.Fatal("the Dockerfile sets no variable")
	}
	return all
}

// The image serves the built-in configuration for everybody who can reach it,
// with its cache in a volume.
func TestImageConfiguration(t *testing.T) {
	t.Parallel()
	g, _, err := (&config.Layers{BuiltIn: builtIn, Environ: imageVariables(t)}).Load()
	do(t, err)
	c := g.Config
	if c.Server.Listen != "0.0.0.0:8080" || !strings.HasPrefix(string(c.Cache.Path), "/var/lib/kvasir/") || !config.IsLoopback(c.Server.Admin) {
		t.Errorf("listen %q, admin %q, cache.path %q", c.Server.Listen, c.Server.Admin, c.Cache.Path)
	}
}

// A good file in the image, too, and one that asks workers which are there.
func TestComposeConfiguration(t *testing.T) {
	t.Parallel()
	g, _, err := (&config.Layers{File: "deploy/kvasir.yaml", Environ: imageVariables(t)}).Load()
	do(t, err)
	c, f := g.Config, readCompose(t)
	hosts := []string{strings.TrimSuffix(c.Cache.Milvus.Address, ":19530")}
	for _, w := range c.Workers {
		for _, raw := range []string{w.URL, w.KVEvents, w.KVReplay} {
			u, err := url.Parse(raw)
			do(t, err)
			hosts = append(hosts, u.Hostname())
		}
	}
	for _, host := range hosts {
		if _, ok := f.Services[host]; !ok {
			t.Errorf("kvasir.yaml asks %q, which is no service", host)
		}
	}
	kvasir := f.Services["kvasir"]
	if !slices.Contains(kvasir.Volumes, "./kvasir.yaml:/etc/kvasir/kvasir.yaml:ro") || !kvasir.ReadOnly {
		t.Errorf("read-only root: %t, volumes %q", kvasir.ReadOnly, kvasir.Volumes)
	}
	if least := c.Server.Drain.Delay + c.Server.Drain.Timeout; kvasir.Grace <= least {
		t.Errorf("it is killed after %v, and drains for up to %v", kvasir.Grace, least)
	}
	for _, name := range []string{"kvasir", "vllm"} {
		devices := f.Services[name].Deploy.Resources.Reservations.Devices
		if len(devices) != 1 || devices[0].Driver != "nvidia" || !slices.Contains(devices[0].Capabilities, "gpu") {
			t.Errorf("%s has the devices %+v", name, devices)
		}
	}
}

// What each service leans on is there.
func TestComposeServices(t *testing.T) {
	t.Parallel()
	f := readCompose(t)
	for name, s := range f.Services {
		if s.Image == nil {
			t.Errorf("%s has no image", name)
		}
		// Kvasir's stands in its image.
		if len(s.Healthcheck.Test) == 0 && name != "kvasir" {
			t.Errorf("%s has no health check", name)
		}
		for other, how := range s.DependsOn {
			if _, ok := f.Services[other]; !ok || how["condition"] == "" {
				t.Errorf("%s depends on %s: %v", name, other, how)
			}
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if _, ok := f.Volumes[volume]; !ok && !strings.HasPrefix(volume, "./") {
				t.Errorf("%s mounts %s, which is not declared", name, volume)
			}
		}
	}
}

// Whatever ends scripts/docker/with.sh ends what it started: the daemon, the
// command, and what that has started.
func TestDockerDaemonEnds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bash", "flock", "setpriv"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			// Both say that they are there by a pipe that ends when they have.
			alive, theirs, err := os.Pipe()
			do(t, err)
			t.Cleanup(func() { alive.Close() })
			for name, text := range map[string]string{"docker": "exit 0", "dockerd": "echo daemon >&3; exec sleep 600", "ip": "exit 1"} {
				do(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
			}
			command := "sleep 600 & echo command >&3; sleep 600; true"
			if sig == syscall.SIGKILL {
				command = "exec 3>&-; read never" // of that, only the daemon is promised
			}
			stdin, hold, err := os.Pipe()
			do(t, err)
			t.Cleanup(func() { stdin.Close(); hold.Close() })
			cmd := exec.Command("scripts/docker/with.sh", dir, "sh", "-c", command)
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR="+dir)
			cmd.ExtraFiles, cmd.Stdin = []*os.File{theirs}, stdin
			do(t, cmd.Start())
			theirs.Close()
			lines := bufio.NewScanner(alive)
			want := 2
			if sig == syscall.SIGKILL {
				want = 1
			}
			for range want {
				if !lines.Scan() {
					t.Fatalf("it ended before it was told to: %v", cmd.Wait())
				}
			}
			do(t, cmd.Process.Signal(sig))
			_ = cmd.Wait()
			do(t, alive.SetReadDeadline(time.Now().Add(20*time.Second)))
			if lines.Scan() || lines.Err() != nil {
				t.Errorf("something goes on: %q, %v", lines.Text(), lines.Err())
			}
		})
	}
}

// The licences that go with the program are those of all that is compiled in.
func TestLicences(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.Command("scripts/licences.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{
		"LICENSE", "NOTICE", "go/LICENSE", "classify/model/weights/LICENSE-USE", "modules/github.com/NVIDIA/go-nvml/LICENSE",
		"modules/go.yaml.in/yaml/v3/NOTICE", "modules/github.com/klauspost/compress/zstd/internal/xxhash/LICENSE.txt",
	} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s is not among them: %v", name, err)
		}
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || len(info.Deps) < 20 {
		t.Fatal("it is not known what is compiled in")
	}
	for _, m := range info.Deps {
		if files, _ := filepath.Glob(filepath.Join(dir, "modules", m.Path, "*")); len(files) == 0 && !strings.HasPrefix(m.Path, "go.uber.org/goleak") {
			t.Errorf("%s is compiled in, and has no licence there", m.Path)
		}
	}
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
