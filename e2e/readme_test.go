// The README's examples, run as they are pasted against what `make run` serves. Only the address is
// another one: the test takes free ports.

package e2e

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestReadmeCurl(t *testing.T) {
	part(t, "readme-curl")
	k := asMakeRun(t)
	examples := examplesOf(t, "../README.md", "sh", `(?m)^curl `)
	if len(examples) < 2 {
		t.Fatalf("only %d examples were found", len(examples))
	}
	streams := 0
	for _, example := range examples {
		out := paste(t, k, example, "sh", "-c")
		switch {
		case strings.Contains(example, "grep -i x-vsr"):
			if !strings.Contains(out, "x-vsr-selected-category: math\r\n") || !strings.Contains(out, "x-vsr-selected-decision: maths\r\n") {
				t.Errorf("not decided as the README says:\n%s\n%s", example, out)
			}
			continue
		case strings.Contains(example, "grep -i cache"):
			for try := 0; try < 10 && !strings.Contains(out, "x-vsr-cache-hit: true\r\n"); try++ { // it is kept after it was sent
				out = paste(t, k, example, "sh", "-c")
			}
			if !strings.Contains(out, "x-vsr-cache-hit: true\r\n") || !strings.Contains(out, "x-vsr-response-path: cache\r\n") {
				t.Errorf("not answered from the cache as the README says:\n%s\n%s", example, out)
			}
			continue
		case strings.Contains(example, "Charge my card"):
			if !strings.Contains(out, `"finish_reason":"content_filter"`) || !strings.Contains(out, "x-vsr-pii-types: CREDIT_CARD\r\n") {
				t.Errorf("not blocked as the README says:\n%s\n%s", example, out)
			}
			continue
		}
		if !strings.Contains(out, `"system_fingerprint":"kvasir-sim"`) && !strings.Contains(out, `"object":"chat.completion.chunk"`) {
			t.Errorf("no answer of a simulated worker:\n%s\n%s", example, out)
		}
		if strings.Contains(example, `"stream": true`) {
			streams++
			if first := paste(t, asMakeRun(t), strings.Replace(example, "curl -N", "curl -siN", 1), "sh", "-c"); !strings.Contains(first, "\r\nx-kvasir-cache: miss\r\n") {
				t.Errorf("it does not show a stream as a worker makes it:\n%s\n%s", example, first)
			}
			if !strings.HasSuffix(out, "data: [DONE]\n\n") || strings.Count(out, "data: ") < 3 {
				t.Errorf("no whole stream:\n%s\n%s", example, out)
			}
		}
	}
	if streams == 0 {
		t.Error("no example streams")
	}
}

func TestReadmePython(t *testing.T) {
	part(t, "python-sdk")
	k := asMakeRun(t)
	examples := append(examplesOf(t, "../README.md", "python", ``), examplesOf(t, "../docs/api.md", "python", ``)...)
	if len(examples) < 2 {
		t.Fatalf("only %d examples were found", len(examples))
	}
	for _, example := range examples {
		out := paste(t, k, example, "../.cache/sdk-python/bin/python", "-c")
		// It prints one answer whole and one as it comes.
		if strings.Count(out, "simulated") < 2 {
			t.Errorf("no two answers of a simulated worker:\n%s\n%s", example, out)
		}
	}
}

// asMakeRun serves config.yaml, as `make run` does, with these flags more.
func asMakeRun(t *testing.T, flags ...string) *kvasir {
	t.Helper()
	config, err := os.ReadFile("../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return serveWith(t, nil, flags, string(config), "sim")
}

// TestReadmeExplain: what is explained is the request that was sent above, and it comes out as that did.
func TestReadmeExplain(t *testing.T) {
	t.Parallel()
	var sent string
	explained := 0
	for _, example := range examplesOf(t, "../README.md", "sh", `curl|explain`) {
		body := regexp.MustCompile(`'(\{.*\})'`).FindStringSubmatch(example)
		if !strings.Contains(example, "kvasir explain") {
			if body != nil {
				sent = body[1]
			}
			continue
		}
		explained++
		if body == nil || body[1] != sent {
			t.Errorf("it explains another request than the one above it, which sends %s:\n%s", sent, example)
		}
		out := command(t, "sh", "-c", strings.ReplaceAll(example, "bin/kvasir", binary(t)))
		if !strings.Contains(out, "maths        yes, taken") {
			t.Errorf("%s\nprints\n%s", example, out)
		}
	}
	if explained == 0 {
		t.Error("no example explains")
	}
}

// examplesOf are a page's code blocks of a language that match a pattern.
func examplesOf(t *testing.T, page, language, pattern string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if regexp.MustCompile(pattern).MatchString(block[1]) {
			found = append(found, block[1])
		}
	}
	return found
}

// paste runs an example and returns what it prints.
func paste(t *testing.T, k *kvasir, example string, program ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !strings.Contains(example, "http://127.0.0.1:8080/") {
		t.Errorf("the example does not ask what make run serves:\n%s", example)
	}
	pasted := strings.ReplaceAll(example, "http://127.0.0.1:8080", k.url)
	cmd := exec.CommandContext(ctx, program[0], append(program[1:], pasted)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v:\n%s\n%s\n%s", err, example, tail(string(out), 4000), tail(stderr.String(), 4000))
	}
	return string(out)
}
