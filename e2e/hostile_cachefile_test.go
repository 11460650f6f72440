// The cache's file: damaged, exchanged, or no file at all. What is read from it is a right answer, or nothing.

package e2e

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestHostileCacheFileAnswersWrongly(t *testing.T) {
	t.Parallel()
	w := echoWorker(t)
	file := filepath.Join(t.TempDir(), "cache")
	config := fmt.Sprintf("server: {drain: {delay: 0s}}\nclassify: {jailbreak: {action: \"off\"}, pii: {action: \"off\"}}\ncache: {path: %q}\n", file)
	questions := []string{"What is the old market of Lyon known for?", "Who built the harbour of Nantes, and when?", "Which river flows through the town of Metz?"}
	k := w.before(t, config)
	answers := map[string]string{}
	for _, q := range questions {
		_, _, answers[q] = askedOf(t, k, q)
	}
	k.stop(t)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if k = w.before(t, config); countHits(t, k, questions, answers) != len(questions) {
		t.Error("the file as it was does not answer")
	}
	k.stop(t)
	random := make([]byte, 5000)
	_, _ = rand.Read(random)
	for name, damaged := range map[string][]byte{
		"a bit of the head flipped":  flipped(good, 20),
		"bits of an entry flipped":   flipped(good, len(good)/2),
		"the last byte flipped":      flipped(good, len(good)-1),
		"cut in the middle":          good[:len(good)/2],
		"cut in the head":            good[:10],
		"empty":                      {},
		"garbage":                    random,
		"garbage behind":             append(bytes.Clone(good), random...),
		"entries twice":              append(bytes.Clone(good), good[128:]...),
		"zeros within":               append(append(bytes.Clone(good[:len(good)/3]), make([]byte, 300)...), good[len(good)/3+300:]...),
		"a text where the file was":  []byte("{\"entries\": []}\n"),
		"the end of it at the begin": append(bytes.Clone(good[len(good)/2:]), good[:len(good)/2]...),
	} {
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if refused := exec.Command(binary(t), "serve", "--config", k.file, "--set", "server.listen="+freeAddress(t), "--set", "server.admin="); !ownFile(damaged, good) {
			out, err := refused.CombinedOutput()
			if left, _ := os.ReadFile(file); err == nil || !bytes.Contains(out, []byte("it is not a cache file")) || !bytes.Equal(left, damaged) {
				t.Errorf("%s: %v %s", name, err, out)
			}
			continue
		}
		k := w.before(t, config)
		hits := countHits(t, k, questions, answers)
		t.Logf("%s: %d hits", name, hits)
		k.stop(t)
	}
}

// ownFile reports whether a file begins as a cache file does. Other files are left alone and
// reported.
func ownFile(b, good []byte) bool {
	const head = 64
	return len(b) == 0 || len(b) >= head && bytes.Equal(b[:8], good[:8])
}

// flipped is b with three bits of it turned, from i on.
func flipped(b []byte, i int) []byte {
	b = bytes.Clone(b)
	for n := range 3 {
		b[min(i+n, len(b)-1)] ^= 1 << (2 * n)
	}
	return b
}

// countHits asks all: a hit must be the answer that was kept.
func countHits(t *testing.T, k *kvasir, questions []string, answers map[string]string) (hits int) {
	t.Helper()
	for _, q := range questions {
		result, _, answer := askedOf(t, k, q)
		if result != "hit" {
			continue
		}
		if hits++; answer != answers[q] {
			t.Errorf("%q is answered with %q instead of %q", q, answer, answers[q])
		}
	}
	return hits
}
