//go:build real

// The image of deploy/Dockerfile: built from a clean checkout and run by a Docker daemon (make test-real).

package e2e

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvasir/gpu/nvmltest"
)

// maxImage bounds the image, in bytes as `docker image inspect` counts them: unpacked.
const maxImage = 135e6

// imagePatience bounds what containers need to start where many processes share a processor.
const imagePatience = time.Minute

// TestRealImage builds on the images of scripts/docker/images.sh, as none can be pulled where it runs.
func TestRealImage(t *testing.T) {
	if os.Getenv("DOCKER_HOST") == "" {
		t.Fatal("no Docker daemon: run it as scripts/test-real.sh does, by scripts/docker/with.sh")
	}
	clone := filepath.Join(t.TempDir(), "kvasir")
	command(t, "git", "clone", "--quiet", "..", clone)
	standard := buildImage(t, clone, "standard", "")
	distroless := buildImage(t, clone, "distroless", "kvasir-test/base")
	scratch := buildImage(t, clone, "scratch", "scratch")

	t.Run("what it says of itself", func(t *testing.T) { inspectImage(t, clone, standard) })
	t.Run("what is in it", func(t *testing.T) { listImage(t, standard) })
	for _, image := range []string{standard, scratch} {
		t.Run(image, func(t *testing.T) {
			t.Run("an answer, kept in the volume", func(t *testing.T) { answersKept(t, image) })
			t.Run("configured by environment", func(t *testing.T) { configuredByEnvironment(t, image) })
			t.Run("configured by a mount", func(t *testing.T) { configuredByMount(t, image) })
			t.Run("SIGTERM lets streams finish", func(t *testing.T) { stopsInGoodOrder(t, image) })
			t.Run("no driver", func(t *testing.T) { wantGPU(t, 1, `no GPU telemetry: .*`, image) })
		})
	}
	t.Run("a published port", func(t *testing.T) { publishesPort(t, standard) })
	t.Run("a driver", func(t *testing.T) { seesGPUs(t, standard) })
	t.Run("a driver, on distroless", func(t *testing.T) { seesGPUs(t, distroless) })
	t.Run("a driver, and no glibc", func(t *testing.T) {
		flags, _ := withDriver(t, 1)
		wantGPU(t, 1, `.*glibc.*`, scratch, flags...)
	})
	t.Run("the compose file", composeFile)
}

func docker(t *testing.T, args ...string) string {
	t.Helper()
	return command(t, "docker", args...)
}

// buildImage builds without a network: modules come with the image to build in. The base "" is the Dockerfile's own.
func buildImage(t *testing.T, clone, name, base string) string {
	t.Helper()
	tag := "kvasir-test/kvasir:" + name
	version := command(t, "git", "-C", clone, "describe", "--tags", "--always")
	began := time.Now()
	args := []string{"build", "--quiet", "--network", "none", "--file", filepath.Join(clone, "deploy/Dockerfile"), "--tag", tag,
		"--build-arg", "GO=kvasir-test/golang",
		"--build-arg", "VERSION=" + version, "--build-arg", "REVISION=" + command(t, "git", "-C", clone, "rev-parse", "HEAD")}
	if base != "" {
		args = append(args, "--build-arg", "BASE="+base)
	}
	docker(t, append(args, clone)...)
	t.Logf("%s: %s bytes, built in %v", tag, docker(t, "image", "inspect", "--format", "{{.Size}}", tag), time.Since(began).Round(time.Second))
	if out := docker(t, "run", "--rm", "--network", "none", tag, "version"); !strings.Contains(out, "kvasir "+version+"\n") || !strings.Contains(out, "nvml helper: inside") {
		t.Errorf("%s says %s", tag, out)
	}
	return tag
}

func inspectImage(t *testing.T, clone, image string) {
	var inspected []struct {
		Size   float64
		Config struct {
			User, StopSignal string
			Env, Entrypoint  []string
			Labels           map[string]string
			Healthcheck      struct{ Test []string }
			Volumes          map[string]any
			ExposedPorts     map[string]any
		}
	}
	if err := json.Unmarshal([]byte(docker(t, "image", "inspect", image)), &inspected); err != nil {
		t.Fatal(err)
	}
	c := inspected[0].Config
	if inspected[0].Size > maxImage {
		t.Errorf("%.1f MB, more than %.0f", inspected[0].Size/1e6, maxImage/1e6)
	}
	if c.User != "65532:65532" || c.StopSignal != "SIGTERM" || c.Volumes["/var/lib/kvasir"] == nil || c.ExposedPorts["8080/tcp"] == nil {
		t.Errorf("%+v", c)
	}
	if !slices.Equal(c.Healthcheck.Test, []string{"CMD", "/usr/local/bin/kvasir", "health"}) {
		t.Errorf("its health check is %q", c.Healthcheck.Test)
	}
	for label, want := range map[string]string{
		"title": "kvasir", "licenses": "Apache-2.0", "revision": command(t, "git", "-C", clone, "rev-parse", "HEAD"),
		"version": command(t, "git", "-C", clone, "describe", "--tags", "--always"),
	} {
		if got := c.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("the label %s is %q, want %q", label, got, want)
		}
	}
	for _, want := range []string{"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=utility"} {
		if !slices.Contains(c.Env, want) {
			t.Errorf("%s is not in its environment %q", want, c.Env)
		}
	}
}

// listImage: nobody but root may change a file, none gives rights, one folder is Kvasir's to write to, and the licences
// of what is in it are in it.
func listImage(t *testing.T, image string) {
	name := newName()
	docker(t, "create", "--name", name, image)
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "rm", "--volumes", name).CombinedOutput(); err != nil {
			t.Errorf("cannot remove %s: %v: %s", name, err, out)
		}
	})
	cmd := exec.CommandContext(t.Context(), "docker", "export", name)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{
		"usr/share/doc/kvasir/LICENSE": true, "usr/share/doc/kvasir/NOTICE": true, "usr/share/doc/libc6/copyright": true,
		"usr/share/doc/kvasir/modules/github.com/NVIDIA/go-nvml/LICENSE": true, "etc/ssl/certs/ca-certificates.crt": true,
	}
	for files := tar.NewReader(bytes.NewReader(out)); ; {
		f, err := files.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		delete(wanted, f.Name)
		mode := f.FileInfo().Mode()
		switch {
		case mode&(os.ModeSetuid|os.ModeSetgid) != 0:
			t.Errorf("%s gives rights: %v", f.Name, mode)
		case f.Name == "var/lib/kvasir/":
			if f.Uid != 65532 || f.Gid != 65532 {
				t.Errorf("%s is of %d:%d", f.Name, f.Uid, f.Gid)
			}
		case f.Uid != 0 || mode.IsRegular() && mode.Perm()&0o022 != 0:
			t.Errorf("%s: %v, of user %d", f.Name, mode, f.Uid)
		}
	}
	for name := range wanted {
		t.Errorf("%s is not in it", name)
	}
}

// A container is a running image as a test sees it.
type container struct {
	name, url, admin string
}

var containers atomic.Int64

// hardened are the flags that docs/deploy.md recommends: nothing of what they take may be needed.
var hardened = []string{"--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"}

// onHost is the network where a container reaches the test's workers, and the test a container's admin listener.
var onHost = append([]string{"--network", "host"}, hardened...)

// startImage runs Kvasir on free ports and waits until it is ready.
func startImage(t *testing.T, image string, flags ...string) *container {
	t.Helper()
	listen, admin := freeAddress(t), freeAddress(t)
	c := &container{newName(), "http://" + listen, "http://" + admin}
	c.run(t, slices.Concat([]string{"--env", "KVASIR_SERVER_LISTEN=" + listen, "--env", "KVASIR_SERVER_ADMIN=" + admin}, onHost, flags, []string{image})...)
	eventually(t, imagePatience, c.name+" is ready", func() bool { return answers(c.admin + "/readyz") })
	return c
}

func newName() string { return fmt.Sprintf("kvasir-test-%d-%d", os.Getpid(), containers.Add(1)) }

// run starts the container, which is removed when the test ends.
func (c *container) run(t *testing.T, args ...string) {
	t.Helper()
	docker(t, append([]string{"run", "--detach", "--name", c.name, "--health-interval", "1s"}, args...)...)
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command("docker", "logs", c.name).CombinedOutput()
			t.Logf("the log of %s:\n%s", c.name, tail(string(out), 6000))
		}
		if out, err := exec.Command("docker", "rm", "--force", "--volumes", c.name).CombinedOutput(); err != nil {
			t.Errorf("cannot remove %s: %v: %s", c.name, err, out)
		}
	})
}

// inspect gives one field of the container.
func (c *container) inspect(t *testing.T, field string) string {
	t.Helper()
	return docker(t, "container", "inspect", "--format", "{{"+field+"}}", c.name)
}

// stop is docker stop: SIGTERM, and SIGKILL much later.
func (c *container) stop(t *testing.T) {
	t.Helper()
	docker(t, "stop", "--time", "60", c.name)
	if code := c.inspect(t, ".State.ExitCode"); code != "0" {
		t.Errorf("%s ended with %s", c.name, code)
	}
}

func question(model, text string) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}]}`, model, text)
}

// wantAnswer sends a request and returns its answer, which must be complete.
func (c *container) wantAnswer(t *testing.T, body string) reply {
	t.Helper()
	got := post(t, c.url+chatRoute, body)
	if got.status != 200 || !bytes.Contains(got.body, []byte(`"finish_reason":"`)) {
		t.Fatalf("status %d, %s", got.status, got.body)
	}
	return got
}

// answersKept: without any configuration it answers, is healthy, and a volume keeps its cache from one container to the
// next, though root is read-only and the user is nobody.
func answersKept(t *testing.T, image string) {
	volume := newName()
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "volume", "rm", volume).CombinedOutput(); err != nil {
			t.Errorf("cannot remove %s: %v: %s", volume, err, out)
		}
	})
	// Started in a subtest, so that its container is gone before its volume.
	t.Run("first", func(t *testing.T) {
		c := startImage(t, image, "--volume", volume+":/var/lib/kvasir")
		first := c.wantAnswer(t, question("auto", "How do I reset a forgotten password?"))
		if first.header.Get("X-Vsr-Cache-Hit") == "true" {
			t.Error("the first answer is from the cache")
		}
		eventually(t, imagePatience, "it is healthy", func() bool { return c.inspect(t, ".State.Health.Status") == "healthy" })
		eventually(t, patience, "a hit", func() bool {
			return c.wantAnswer(t, question("auto", "How do I reset a forgotten password?")).header.Get("X-Vsr-Cache-Hit") == "true"
		})
		if out := docker(t, "exec", c.name, "/usr/local/bin/kvasir", "health", "--ready"); !strings.HasPrefix(out, "ready at server.admin") {
			t.Errorf("health --ready says %q", out)
		}
		cmd := exec.CommandContext(t.Context(), "docker", "exec", "--interactive", c.name, "/usr/local/bin/kvasir", "explain")
		cmd.Stdin = strings.NewReader(question("auto", "How do I reset a forgotten password?"))
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("a hit: entry")) {
			t.Errorf("explain, which copies the cache's file: %v\n%s", err, out)
		}
		c.stop(t)
	})
	t.Run("second", func(t *testing.T) {
		c := startImage(t, image, "--volume", volume+":/var/lib/kvasir")
		if got := c.wantAnswer(t, question("auto", "How do I reset a forgotten password?")); got.header.Get("X-Vsr-Cache-Hit") != "true" {
			t.Errorf("after the restart it is asked again: %v", got.header)
		}
		c.stop(t)
	})
}

func configuredByEnvironment(t *testing.T, image string) {
	w := simulate(t)
	c := startImage(t, image, "--env", "KVASIR_SIMULATE=[]", "--env", "KVASIR_CACHE_STORE=off",
		"--env", "KVASIR_WORKERS=[{name: outside, url: '"+w.url()+"'}]")
	if got := c.wantAnswer(t, question("sim", "Name three colours.")); got.header.Get("X-Kvasir-Worker") != "outside" {
		t.Errorf("who answered: %v", got.header)
	}
}

// configuredByMount: the folder is mounted, so that a new file is taken over as anywhere.
func configuredByMount(t *testing.T, image string) {
	w, dir := simulate(t), t.TempDir()
	write := func(name string) {
		text := "workers: [{name: " + name + ", url: '" + w.url() + "'}]\nmodels: [{name: sim, default: true}]\ncache: {store: off}\n"
		// As editors do: a new file in place of the old one.
		if err := os.WriteFile(filepath.Join(dir, "next"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "kvasir.yaml")); err != nil {
			t.Fatal(err)
		}
	}
	write("before")
	c := startImage(t, image, "--volume", dir+":/etc/kvasir:ro")
	if got := c.wantAnswer(t, question("auto", "Name three colours.")); got.header.Get("X-Kvasir-Worker") != "before" {
		t.Errorf("who answered: %v", got.header)
	}
	write("after")
	eventually(t, patience, "the new file", func() bool {
		return c.wantAnswer(t, question("auto", "Name three colours.")).header.Get("X-Kvasir-Worker") == "after"
	})
	if got := docker(t, "exec", c.name, "/usr/local/bin/kvasir", "check"); !strings.HasPrefix(got, "/etc/kvasir/kvasir.yaml: ok (1 worker") {
		t.Errorf("check says %q", got)
	}
}

// stopsInGoodOrder: docker stop in mid-stream, and the client has its whole answer.
func stopsInGoodOrder(t *testing.T, image string) {
	c := startImage(t, image, "--env", "KVASIR_CACHE_STORE=off")
	stream := open(t, c.url+chatRoute, chat(true, 600))
	seen := stream.skip(t, 5)
	stopped := make(chan error, 1)
	go func() { stopped <- exec.Command("docker", "stop", "--time", "60", c.name).Run() }()
	eventually(t, patience, "it drains", func() bool { return !answers(c.admin + "/readyz") })
	got := stream.rest()
	got.body = append(seen, got.body...)
	wantFinished(t, got)
	if err := <-stopped; err != nil {
		t.Errorf("docker stop: %v", err)
	}
	if code := c.inspect(t, ".State.ExitCode"); code != "0" {
		t.Errorf("it ended with %s", code)
	}
}

// publishesPort: in a network of its own, with nothing but the port published, as the first lines of docs/deploy.md.
func publishesPort(t *testing.T, image string) {
	if os.Getenv("KVASIR_DOCKER_BRIDGE") == "" {
		t.Skip("this system makes no bridges, so the daemon publishes no ports")
	}
	c := &container{name: newName()}
	c.run(t, append(slices.Clone(hardened), "--publish", "127.0.0.1::8080", image)...)
	c.url = "http://" + docker(t, "port", c.name, "8080/tcp")
	eventually(t, imagePatience, "it is ready", func() bool { return answers(c.url + "/readyz") })
	c.wantAnswer(t, question("auto", "Name three colours."))
	eventually(t, imagePatience, "it is healthy", func() bool { return c.inspect(t, ".State.Health.Status") == "healthy" })
	c.stop(t)
}

// libraryFolder is where the NVIDIA runtime mounts the driver's libraries into images made from Debian.
var libraryFolder = map[string]string{"amd64": "/usr/lib/x86_64-linux-gnu/", "arm64": "/usr/lib/aarch64-linux-gnu/"}

// withDriver are the flags that give a container a fake driver, mounted as the NVIDIA runtime mounts the real one.
func withDriver(t *testing.T, gpus int) ([]string, *nvmltest.Driver) {
	t.Helper()
	driver := nvmltest.New(t)
	driver.Set(nvmltest.Host(gpus)...)
	_, state, _ := strings.Cut(driver.Env()[0], "=")
	return []string{
		"--volume", driver.Library() + ":" + libraryFolder[runtime.GOARCH] + "libnvidia-ml.so.1:ro",
		"--volume", filepath.Dir(state) + ":/state:ro", "--env", "FAKE_NVML_STATE=/state/" + filepath.Base(state),
	}, driver
}

// wantGPU runs `kvasir gpu` in a container of its own.
func wantGPU(t *testing.T, wantCode int, want, image string, flags ...string) {
	t.Helper()
	args := slices.Concat([]string{"run", "--rm"}, onHost, flags, []string{image, "gpu"})
	out, err := exec.CommandContext(t.Context(), "docker", args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	code := 0
	if exit != nil {
		code = exit.ExitCode()
	}
	if code != wantCode || !regexp.MustCompile(`(?s)^(?:kvasir: )?`+want+`\s*$`).Match(out) {
		t.Errorf("kvasir gpu: exit code %d, want %d; output, which should match %q:\n%s", code, wantCode, want, out)
	}
	t.Logf("kvasir gpu says\n%s", out)
}

// seesGPUs: the embedded helper starts from memory and loads the library of the container, by its glibc.
func seesGPUs(t *testing.T, image string) {
	flags, driver := withDriver(t, 2)
	wantGPU(t, 0, `.*570\.86\.15.*H100.*H100.*`, image, flags...)

	c := startImage(t, image, flags...)
	type fleet struct {
		State, Driver string
		GPUs          []struct {
			State    string
			UUID     string
			Throttle []string `json:"throttle_reasons"`
		}
	}
	look := func() (f fleet) {
		if err := json.Unmarshal(get(t, c.admin+"/debug/gpu").body, &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	eventually(t, imagePatience, "two GPUs are seen", func() bool {
		f := look()
		return f.State == "ok" && f.Driver == "570.86.15" && len(f.GPUs) == 2 && f.GPUs[1].State == "ok"
	})
	driver.Set(append(nvmltest.Host(2), "1.throttle 0x40")...)
	eventually(t, imagePatience, "the thermal slowdown is seen", func() bool {
		f := look()
		return len(f.GPUs) == 2 && slices.Contains(f.GPUs[1].Throttle, "hw_thermal_slowdown")
	})
	c.wantAnswer(t, question("auto", "Name three colours."))
	c.stop(t)
}

// composeFile is read by the program that users give it to: the plugin of Docker, or the older program.
func composeFile(t *testing.T) {
	compose := []string{"docker", "compose"}
	if exec.Command("docker", "compose", "version").Run() != nil {
		compose = []string{"docker-compose"}
	}
	out := command(t, compose[0], append(compose[1:], "--file", "../deploy/compose.yaml", "config")...)
	for _, want := range []string{"vllm/vllm-openai:", "milvusdb/milvus:", "/etc/kvasir/kvasir.yaml", "driver: nvidia"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what it makes of the file:\n%s", want, out)
		}
	}
}
