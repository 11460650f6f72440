// Own weights: they judge, the others stay, and what is wrong with them is said.

package model

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ownDir is a directory with these files.
func ownDir(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tensorIn returns the bytes of a tensor in a copy of a file.
func tensorIn(t testing.TB, file []byte, name string) []byte {
	t.Helper()
	ts, err := OpenTensors(file)
	if err != nil {
		t.Fatal(err)
	}
	e, ok := ts.index[name]
	if !ok {
		t.Fatalf("there is no tensor %q", name)
	}
	return ts.data[e.Offsets[0]:e.Offsets[1]]
}

// other is the embedded head of the category with its labels turned by one, and without its n-grams,
// which still have the old labels.
func other(t testing.TB) []byte {
	file := []byte(headsFile)
	for _, name := range expertNames {
		labels := tensorIn(t, file, "category."+name+".label")
		for i := range labels {
			labels[i] = (labels[i] + 1) % byte(len(Categories))
		}
		clear(tensorIn(t, file, "category."+name+".mix")[:4]) // the share of the n-grams
	}
	return file
}

func TestOwnWeightsJudge(t *testing.T) {
	standard := embeddedModel(t)
	m, err := Own(ownDir(t, map[string][]byte{"heads.safetensors": other(t), "README.md": []byte("ours")}))
	if err != nil {
		t.Fatal(err)
	}
	var s, s2 Scratch
	text := []byte("What is the derivative of x squared times the sine of x?")
	tokens := standard.Tokenize(nil, text, &s)
	var want, got [len(Categories)]float32
	standard.Category(&want, text, tokens, &s)
	m.Category(&got, text, tokens, &s2)
	if top := index(got); top == index(want) {
		t.Errorf("the category is %s by both", Categories[top])
	}
	if a, b := standard.Attack([]byte(override), standard.Tokenize(nil, []byte(override), &s), false, &s), m.Attack([]byte(override), m.Tokenize(nil, []byte(override), &s2), false, &s2); a != b {
		t.Errorf("the guard, of which there are no own weights, scores %v, not %v", b, a)
	}
	var v, v2 [Dim]float32
	standard.Embed(&v, tokens, &s)
	m.Embed(&v2, tokens, &s2)
	if v != v2 {
		t.Error("embeddings differ: what was kept is no longer comparable")
	}
}

func index(p [len(Categories)]float32) (top int) {
	for i := range p {
		if p[i] > p[top] {
			top = i
		}
	}
	return top
}

// All files that training writes are taken.
func TestOwnWeightsOfAllKinds(t *testing.T) {
	if _, err := Own(ownDir(t, map[string][]byte{
		"heads.safetensors": []byte(headsFile), "guard.safetensors": []byte(guardFile),
	})); err != nil {
		t.Error(err)
	}
}

func TestOwnWeightsSayWhatIsWrong(t *testing.T) {
	pipe := ownDir(t, nil)
	if err := syscall.Mkfifo(filepath.Join(pipe, "guard.safetensors"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := ownDir(t, nil)
	if err := os.Mkdir(filepath.Join(folder, "guard.safetensors"), 0o700); err != nil {
		t.Fatal(err)
	}
	huge := []byte(guardFile)
	binary.LittleEndian.PutUint32(tensorIn(t, huge, "guard.scale"), 0x7f000000)
	foreign := bytes.Replace([]byte(headsFile), []byte(EncoderHash), []byte("0123456789ab"), 1)
	labels := []byte(headsFile)
	tensorIn(t, labels, "category.exam.label")[3] = 14
	earlier := bytes.Replace([]byte(headsFile), []byte(`"category.exam.label":`), []byte(`"category.label"     :`), 1)
	apart := bytes.Replace([]byte(guardFile), []byte(`"guard.ngram.rows":`), []byte(`"guard.ngram.idf" :`), 1)
	for name, row := range map[string]struct{ dir, want string }{
		"old n-grams":     {ownDir(t, map[string][]byte{"guard.safetensors": apart}), "it was trained for a version of Kvasir that had rarities and weights of n-grams apart"},
		"one head":        {ownDir(t, map[string][]byte{"heads.safetensors": earlier}), "it was trained for a version of Kvasir that had one head"},
		"no directory":    {filepath.Join(pipe, "none"), "no such file or directory"},
		"an empty one":    {ownDir(t, nil), "none of heads.safetensors, guard.safetensors is in it"},
		"a pipe":          {pipe, `guard.safetensors": it is no file of at most 64 MiB`},
		"a folder":        {folder, "it is no file"},
		"no weights":      {ownDir(t, map[string][]byte{"heads.safetensors": []byte("hello, these are none")}), "header of"},
		"half a file":     {ownDir(t, map[string][]byte{"guard.safetensors": []byte(guardFile[:len(guardFile)/2])}), "in a file with"},
		"another's":       {ownDir(t, map[string][]byte{"heads.safetensors": []byte(guardFile)}), `cannot open category head: cannot read tensor "category.gate.hidden.scale": no such tensor`},
		"another encoder": {ownDir(t, map[string][]byte{"heads.safetensors": foreign}), `it was trained for the encoder "0123456789ab", this one is "` + EncoderHash},
		"a huge number":   {ownDir(t, map[string][]byte{"guard.safetensors": huge}), `value 0 of tensor "guard.scale" is 1.7014118e+38, beyond 1e+06`},
		"no such label":   {ownDir(t, map[string][]byte{"heads.safetensors": labels}), "field 3 of"},
	} {
		if _, err := Own(row.dir); err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), row.dir) {
			t.Errorf("%s: error %v, want one with %q that names %s", name, err, row.want, row.dir)
		}
	}
	if _, err := Own(ownDir(t, nil)); !errors.Is(err, ErrNoWeights) {
		t.Errorf("an empty directory: %v is not ErrNoWeights", err)
	}
}

// FuzzOwn changes a few bytes of a file, mostly of its header: it is refused, or it judges, and every score is a number.
func FuzzOwn(f *testing.F) {
	f.Add(uint32(30), []byte("1"), false)
	f.Add(uint32(400), []byte("0,0"), true)
	f.Add(uint32(2000), []byte{0xff, 0xff, 0x7f, 0x49}, true)
	f.Add(uint32(1<<20), bytes.Repeat([]byte{0x80}, 64), false)
	standard, err := Embedded()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, at uint32, with []byte, guard bool) {
		file, open := []byte(headsFile), (*Model).openCategory
		if guard {
			file, open = []byte(guardFile), (*Model).openGuard
		}
		copy(file[int(at)%len(file):], with)
		m := *standard
		if checkOwn(file) != nil || open(&m, file) != nil {
			return
		}
		var s Scratch
		text := []byte(override)
		tokens := m.Tokenize(nil, text, &s)
		var p [len(Categories)]float32
		m.Category(&p, text, tokens, &s)
		scores := m.Attack(text, tokens, true, &s)
		for _, v := range append(p[:], scores.Attack, scores.Injection, scores.Harmful, scores.Indirect) {
			if !(v >= 0 && v <= 1) {
				t.Fatalf("a score is %v: %v, %v", v, p, scores)
			}
		}
	})
}
