// Token for token: the real library, on the real files.

package tokenize

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

const cached = "../.cache/"

// realFiles are the models of scripts/tokenizers/package.json.
var realFiles = []string{"deepseek_v3", "gemma3", "gptoss", "llama2", "llama3", "llama3_1", "qwen2_5", "qwen3"}

// encoderFiles are what scripts/tokenizers/encoders.py writes.
var encoderFiles = []string{"minilm", "bert-cased", "e5", "t5-like", "deberta-like", "albert-like"}

// textsEach is how many texts are compared with each real file, textsEachSmall with each fixture.
const (
	textsEach      = 25_000
	textsEachSmall = 5_000
)

// part skips the test if scripts/parts.sh could not install this real part.
func part(tb testing.TB, name string) {
	tb.Helper()
	if _, err := os.Stat(cached + "parts/" + name); err == nil {
		return
	}
	if os.Getenv("KVASIR_REAL") == "required" {
		tb.Fatalf("the real part %s is missing: scripts/parts.sh %s", name, name)
	}
	tb.Skipf("SKIP real part: %s: scripts/parts.sh %s brings it", name, name)
}

// python runs a script of scripts/tokenizers where the reference library is.
func python(script string, args ...string) *exec.Cmd {
	cmd := exec.Command(cached+"tokenizers/bin/python", append([]string{"../scripts/tokenizers/" + script}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestReference(t *testing.T) {
	part(t, "tokenizers")
	t.Run("real", func(t *testing.T) {
		part(t, "tokenizer-files")
		for i, name := range realFiles {
			t.Run(name, func(t *testing.T) {
				compare(t, filepath.Join(cached+"tokenizer-files", name, "tokenizer.json"), uint64(i), textsEach)
			})
		}
	})
	t.Run("encoders", func(t *testing.T) {
		part(t, "encoder-tokenizers")
		for i, name := range encoderFiles {
			t.Run(name, func(t *testing.T) {
				compare(t, filepath.Join(cached+"encoder-tokenizers", name, "tokenizer.json"), 200+uint64(i), textsEach)
			})
		}
	})
	for i, name := range fixtureNames(t) {
		t.Run(name, func(t *testing.T) {
			compare(t, filepath.Join("testdata", name+".json"), 100+uint64(i), textsEachSmall)
		})
	}
}

// compare gives the same texts to this package and to the library, and compares the tokens.
func compare(t *testing.T, path string, seed uint64, n int) {
	tokenizer, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	m := newTexts(seed, tokenizer)
	all := m.giants()
	for len(all) < n {
		all = append(all, m.text())
	}
	cmd := python("reference.py", path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- send(in, all) }()
	wrong, tokens, bytes, located, misplaced := 0, 0, 0, 0, 0
	answers := bufio.NewReader(out)
	for i, text := range all {
		want, err := readIDs(answers)
		if err != nil {
			t.Fatal("the reference library stopped:", err, <-sent)
		}
		tokens, bytes = tokens+len(want), bytes+len(text)
		if got := tokenizer.Append(nil, []byte(text), asked(i) == askSpecials); !slices.Equal(got, want) {
			if wrong++; wrong <= 5 {
				t.Errorf("text %d, %.2000q:\n got %.300v\nwant %.300v", i, text, got, want)
			}
		}
		if asked(i) != askSpans {
			continue
		}
		wanted := make([]Span, len(want))
		if err := binary.Read(answers, binary.LittleEndian, wanted); err != nil {
			t.Fatal(err)
		}
		decoded := appendValid(nil, []byte(text)) // which is what the library was given
		got, spans := tokenizer.AppendSpans(nil, nil, decoded)
		located++
		if !slices.Equal(got, want) || tokenizer.spells() && !slices.Equal(spans, wanted) {
			if misplaced++; misplaced <= 5 {
				t.Errorf("text %d, %.1000q:%s", i, decoded, firstDifference(tokenizer, got, spans, want, wanted))
			}
		}
	}
	if err := errors.Join(<-sent, cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d texts differ, the spans of %d of %d; %d bytes, %d tokens", wrong, n, misplaced, located, bytes, tokens)
}

func firstDifference(t *Tokenizer, got []uint32, at []Span, want []uint32, wanted []Span) string {
	for i := range want {
		if i >= len(got) || got[i] != want[i] || at[i] != wanted[i] {
			i = max(i-2, 0)
			var text []byte
			for _, token := range want[i:min(i+5, len(want))] {
				text = fmt.Appendf(text, " %q", t.AppendBytes(nil, token))
			}
			return fmt.Sprintf(" from token %d,%s:\n got %v %v\nwant %v %v", i, text, got[i:min(i+5, len(got))], at[i:min(i+5, len(at))],
				want[i:min(i+5, len(want))], wanted[i:min(i+5, len(wanted))])
		}
	}
	return fmt.Sprintf(" %d tokens, %d spans, want %d", len(got), len(at), len(want))
}

// spells reports whether the spans must equal the library's exactly; see AppendSpans for those
// that need not.
func (t *Tokenizer) spells() bool { return t.bpe == nil || t.bpe.glue != nil }

// The kinds of question about a text, numbered as in reference.py.
const (
	askTokens = iota
	askSpecials
	askSpans
)

func asked(i int) byte { return byte(i % 3) }

// send writes texts as reference.py reads them.
func send(w io.WriteCloser, all []string) error {
	buffered := bufio.NewWriter(w)
	for i, text := range all {
		head := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
		_, _ = buffered.Write(append(head, asked(i)))
		_, _ = buffered.WriteString(text)
		if i%1000 == 999 || i == len(all)-1 {
			_, _ = buffered.WriteString("\xff\xff\xff\xff")
		}
	}
	return errors.Join(buffered.Flush(), w.Close())
}

func readIDs(r io.Reader) ([]uint32, error) {
	var n uint32
	if err := binary.Read(r, binary.LittleEndian, &n); err != nil {
		return nil, err
	}
	ids := make([]uint32, n)
	return ids, binary.Read(r, binary.LittleEndian, ids)
}

// unicode.bin still agrees with the installed library.
func TestUnicodeTable(t *testing.T) {
	part(t, "tokenizers")
	out := filepath.Join(t.TempDir(), "unicode.bin")
	if err := python("tables.py", out).Run(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(data, unicodeBin) {
		t.Fatal("unicode.bin is not what scripts/tokenizers/tables.py writes")
	}
}
