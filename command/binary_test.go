// Tests of the program as people run it: exit codes, output, completion. What needs the proxy stands in serve_test.go.

package command

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// binary builds the program once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "kvasir-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "kvasir")
	out, err := exec.Command("go", "build", "-o", path, "-ldflags", "-X main.version=v0.0.1-test -X main.date=2026-11-28T00:00:00Z", "kvasir").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

// helperInside is what version says of what make build left in the tree.
func helperInside() string {
	if _, err := os.Stat("../gpu/inside/helper-" + runtime.GOOS + "-" + runtime.GOARCH + ".gz"); err != nil {
		return "not inside, so GPU telemetry is off; .*"
	}
	return "inside, protocol 1"
}

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// command is one run of the program with nothing of our environment but what
// it is given.
func command(t *testing.T, environ []string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, environ...)
	return cmd
}

// What import makes of each of its golden files is taken by check, with the variables that it names.
func TestImportedIsTaken(t *testing.T) {
	t.Parallel()
	var environ []string
	for _, name := range []string{"BASE_KEY", "THINKER_KEY", "EXAMPLE_KEY", "HOSTED_X_API_TOKEN", "ODD_KEY", "MILVUS_PASSWORD", "OPENAI_API_KEY", "VECTORS_KEY", "GROQ_API_KEY"} {
		environ = append(environ, name+"=value")
	}
	environ = append(environ, "EMBED_BASE=http://127.0.0.1:9", "LITELLM_MASTER_KEY_SHA256="+strings.Repeat("ab", 32))
	for _, from := range []string{"vllm-sr", "litellm"} {
		files, _ := filepath.Glob("../config/convert/testdata/" + from + "/*.want.yaml")
		if len(files) < 2 {
			t.Fatal("there are no golden files of ", from)
		}
		for _, want := range files {
			t.Run(want, func(t *testing.T) {
				t.Parallel()
				file := strings.TrimSuffix(want, ".want.yaml") + ".yaml"
				result := filepath.Join(t.TempDir(), "kvasir.yaml")
				if out, err := command(t, nil, "import", "--from", from, file, "--output", result).CombinedOutput(); err != nil {
					t.Fatalf("import: %v\n%s", err, out)
				}
				if out, err := command(t, environ, "check", "--config", result).CombinedOutput(); err != nil || !strings.Contains(string(out), ": ok (") {
					t.Errorf("check: %v\n%s", err, out)
				}
			})
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	const usage = `kvasir: `
	for _, tt := range []struct {
		args   string
		env    string
		code   int
		stdout string // regular expressions; "" wants nothing
		stderr string
	}{
		{"check", "", 0, `^built-in config\.yaml: ok \(0 workers, 2 simulated, 1 model, 0 keys\)\n$`, ``},
		{"check --config ../testdata/config/good/full.yaml", "", 0, `full\.yaml: ok \(2 workers, 2 simulated, 6 sources of workers, 2 models, 2 keys\)\nwarning: server\.tls: .*\nwarning: tracing\.content: .*\nwarning: workers\[1\]\.url: .*\n$`, ``},
		{"check", "KVASIR_CONFIG=../testdata/config/good/anchors.yaml", 0, `anchors\.yaml: ok \(3 workers, 0 models, 1 key\)\n(warning: workers\[[0-2]\]\.url: .*\n){3}$`, ``},
		{"check --config ../testdata/config/bad/no-workers.yaml", "KVASIR_CONFIG=../testdata/config/good/full.yaml", 2, ``, `^\.\./testdata/config/bad/no-workers\.yaml:1:1: workers: no worker to ask: .*\n$`},
		{"serve --config ../testdata/config/bad/models.yaml", "", 2, ``, `^\.\./testdata/config/bad/models\.yaml:2:20: classify\.models: cannot use the weights in .*\n$`},
		{"--config nowhere.yaml", "", 2, ``, `^nowhere\.yaml: cannot read the configuration: no such file or directory\n$`},
		{"--config ../testdata/config/good/full.yaml check", "", 0, `full\.yaml: ok`, ``},
		{"check --set routing.policy=p2", "", 2, ``, `^--set routing\.policy: routing\.policy: must be .* did you mean "p2c"\?\n$`},
		{"check --set routing.policy", "", 2, ``, usage + `--set routing\.policy: write it as path=value\n`},
		{"check --log-level loud", "", 2, ``, `^--log-level: log\.level: must be .*\n$`},
		{"check", "KVASIR_LOG_LEVEL=inf", 2, ``, `^KVASIR_LOG_LEVEL: log\.level: must be .* did you mean "info"\?\n$`},
		{"check --set server.cors=https://a,https://b --listen :0 --admin= --log-format json", "", 0, `ok`, ``},
		{"import --from vllm-sr ../config/convert/testdata/vllm-sr/v01.yaml", "", 0, `(?s)^# Kvasir's configuration, made by kvasir import of v01\.yaml.*\n  - name: near\n`, `(?m)^\.\./config/convert/testdata/vllm-sr/v01\.yaml:5: listeners\[1\]: Kvasir has one address for clients, .*\n`},
		{"import --from litellm ../config/convert/testdata/litellm/wild.yaml --strict", "", 1, ``, `(?s)^.*wild\.yaml:4: .*\nkvasir: 6 notes above, and --strict takes none; nothing was written\n$`},
		{"import --from litellm ../config/convert/testdata/litellm/wild.yaml --output binary_test.go", "", 1, ``, `kvasir: cannot write the result: open binary_test\.go: file exists\n$`},
		{"import --from litellm ../config/convert/testdata/vllm-sr/v01.yaml", "", 2, ``, `^kvasir: cannot import: .*v01\.yaml is no configuration of LiteLLM, which has some of model_list, router_settings and litellm_settings at its top\nRun "kvasir import --help" for help\.\n$`},
		{"import --from vllm-rs x.yaml", "", 2, ``, `^kvasir: cannot read the file: open x\.yaml: no such file or directory\n`},
		{"import --from vllm-rs binary_test.go", "", 2, ``, `^kvasir: cannot import: "vllm-rs" is no program whose configuration can be read, did you mean "vllm-sr"\?; those are vllm-sr and litellm\n`},
		{"import config.yaml", "", 2, ``, usage + `--from: is missing; name the program that the file is of, vllm-sr or litellm\n`},
		{"import --from litellm", "", 2, ``, usage + `name one file, or - for stdin\n`},
		{"__complete import --from ", "", 0, `^vllm-sr\nlitellm\n:4\n$`, `ShellCompDirectiveNoFileComp`},
		{"chekc", "", 2, ``, usage + `there is no command "chekc", did you mean "check"\?\nRun "kvasir --help" for help\.\n$`},
		{"serve now", "", 2, ``, usage + `serve takes no argument "now"\n`},
		{"check --confg x", "", 2, ``, usage + `unknown flag: --confg, did you mean "--config"\?\nRun "kvasir check --help" for help\.\n$`},
		{"check -x", "", 2, ``, usage + `unknown shorthand flag`},
		{"check --port 80", "", 2, ``, usage + `unknown flag: --port, did you mean "--listen"\?\n`},
		{"check config.yaml", "", 2, ``, usage + `check takes no argument "config\.yaml", did you mean "--config config\.yaml"\?\n`},
		{"config.yml", "", 2, ``, usage + `kvasir takes no argument "config\.yml", did you mean "--config config\.yml"\?\n`},
		{"check --config", "", 2, ``, usage + `flag needs an argument: --config\n`},
		{"simulate --block-size 0", "", 2, ``, usage + `invalid argument "0" for "--block-size" flag: must be at least 1, is 0\n`},
		{"simulate --blocks 10", "", 2, ``, usage + `--max-model-len: 32768 is more than the 160 tokens that the blocks hold \(10 of 16\)\n`},
		{"simulate --role prefil", "", 2, ``, usage + `.*did you mean "prefill"\?\n`},
		{"simulate --listen 8000", "", 2, ``, usage + `--listen: "8000" has no host, did you mean "127\.0\.0\.1:8000"\?\n`},
		{"simulate --events 127.0.0.1:5557", "", 2, ``, usage + `--events: "127\.0\.0\.1:5557" is no address such as tcp://127\.0\.0\.1:5557\n`},
		{"simulate --replay tcp://127.0.0.1:5558", "", 2, ``, usage + `--replay: repeats what --events missed; set --events, too\n`},
		{"simulate --model auto", "", 2, ``, usage + `--model: "auto" is what clients ask for`},
		{"simulate --listen unix:/nowhere/x.sock", "", 1, ``, `^kvasir: cannot listen on "unix:/nowhere/x\.sock": .*no such file or directory\n$`},
		{"register", "", 2, ``, usage + `--etcd: is missing; give the URLs of etcd's servers, such as \[http://10\.0\.0\.1:2379\]\nRun "kvasir register --help" for help\.\n$`},
		{"register --etcd 10.0.0.1:2379", "", 2, ``, usage + `--etcd: "10\.0\.0\.1:2379" has no scheme, did you mean "http://10\.0\.0\.1:2379"\?\n`},
		{"register --etcd http://a:2379", "", 2, ``, usage + `--url: is missing; give the worker's address, such as http://10\.0\.0\.5:8000\n`},
		{"register --etcd http://a:2379 --url http://a:1 --prefix pool", "", 2, ``, usage + `--prefix: must end with /, did you mean "pool/"\?\n`},
		{"register --etcd http://a:2379 --url http://a:1 --kv-events a:5557", "", 2, ``, usage + `--kv-events: "a:5557" is no address .*\n`},
		{"register --etcd http://a:2379 --url http://a:1 --lease 1s", "", 2, ``, usage + `--lease: must be whole seconds from 2s to 1h0m0s, is 1s\n`},
		{"register --etcd http://a:2379 --url http://a:1 --user kvasir", "", 2, ``, usage + `--user: has no password; set --password-file\n`},
		{"register --etcd https://a:2379 --url http://a:1 --ca nowhere.pem", "", 2, ``, usage + `--ca: cannot read file "nowhere\.pem": no such file or directory\n`},
		{"register --etcd http://a:2379 --url http://a:1 --role decod", "", 2, ``, usage + `.* did you mean "decode"\?\n`},
		{"__complete register --role ", "", 0, `^both\nprefill\ndecode\n:4\n$`, `ShellCompDirectiveNoFileComp`},
		{"drain", "", 2, ``, usage + `name one worker; .*\nRun "kvasir drain --help" for help\.\n$`},
		{"drain a b", "", 2, ``, usage + `name one worker; `},
		{"drain a --admin=", "", 1, ``, `^kvasir: there is no admin listener to ask: server\.admin is off\n$`},
		{"drain a --admin 127.0.0.1:1", "", 1, ``, `^kvasir: no Kvasir answers at server\.admin "127\.0\.0\.1:1": connection refused\n$`},
		{"drain a --admin 127.0.0.1:1 --key-file nowhere.key", "", 1, ``, `^kvasir: cannot read the key of the admin listener: open nowhere\.key: no such file or directory\n$`},
		{"completion", "", 2, ``, usage + `name one shell: bash, zsh or fish\n`},
		{"completion zhs", "", 2, ``, usage + `no completion for "zhs".* did you mean "zsh"\?\n`},
		{"completion bash", "", 0, `(?s)bash completion.*__start_kvasir`, ``},
		{"completion zsh", "", 0, `#compdef kvasir`, ``},
		{"completion fish", "", 0, `fish completion for kvasir`, ``},
		{"__complete simulate --role ", "", 0, `^both\nprefill\ndecode\n:4\n$`, `ShellCompDirectiveNoFileComp`},
		{"__complete check --set serv", "", 0, `(?m)^server\.listen=$`, `ShellCompDirectiveNoSpace`},
		{"help", "", 0, `(?s)Examples:.*Usage:.*Commands:.*simulate.*Flags:.*--config file`, ``},
		{"help check", "", 0, `(?s)Examples:.*kvasir check --config config\.yaml --live.*Usage:\n  kvasir check \[flags\]`, ``},
		{"version --help", "", 0, `\n  -h, --help +help for version\n      --json +as JSON\n`, ``},
		{"help nothing", "", 2, ``, usage + `there is no command "nothing"`},
		{"simulate --help", "", 0, `(?s)Examples:.*Usage:.*--max-batched-tokens int +most tokens in a pass \(default 8192\)`, ``},
		{"version", "", 0, `^kvasir v0\.0\.1-test of 2026-11-28T00:00:00Z\ngo: \S+ \S+/\S+\nbuild: .*CGO_ENABLED=[01].*\nweights: [0-9a-f]{12}\nnvml helper: ` + helperInside() + `\n$`, ``},
		{"version --json", "", 0, `(?s)^\{\n  "version": "v0\.0\.1-test",\n  "date": "2026-11-28T00:00:00Z",\n  "go": "\S+",\n  "platform": "\S+/\S+",\n.*"weights": "[0-9a-f]{12}"`, ``},
		{"--version", "", 0, `^kvasir v0\.0\.1-test\n$`, ``},
	} {
		t.Run(tt.args+" "+tt.env, func(t *testing.T) {
			t.Parallel()
			args := strings.Split(tt.args, " ")
			cmd := command(t, strings.Fields(tt.env), args...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			var exit *exec.ExitError
			if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, s := range []struct{ name, got, want string }{{"stdout", stdout.String(), tt.stdout}, {"stderr", stderr.String(), tt.stderr}} {
				if s.want == "" && s.got != "" || !regexp.MustCompile(s.want).MatchString(s.got) {
					t.Errorf("%s is %q, want %q", s.name, s.got, s.want)
				}
			}
		})
	}
}
