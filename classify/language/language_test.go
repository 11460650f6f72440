// Tests of language: sentences of many languages, of the length of a question.

package language

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// sentences are rows of code and sentence, written for this test.
func sentences(tb testing.TB) (rows [][2]string) {
	file, err := os.ReadFile("testdata/languages.tsv")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(file)) {
		code, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		rows = append(rows, [2]string{code, text})
	}
	return rows
}

func TestLanguages(t *testing.T) {
	right, all := 0, 0
	missed := map[string][]string{}
	var sure, surelyRight int
	for _, row := range sentences(t) {
		code, confidence := Detect([]byte(row[1]))
		all++
		if code == row[0] {
			right++
		} else {
			missed[row[0]] = append(missed[row[0]], code)
		}
		if confidence >= 0.8 {
			sure++
			if code == row[0] {
				surelyRight++
			}
		}
	}
	t.Logf("%d of %d right; of %d with confidence 0.8, %d; missed %v", right, all, sure, surelyRight, missed)
	if share := float64(right) / float64(all); share < 0.94 {
		t.Errorf("%.3f of all are right", share)
	}
	for code, as := range missed {
		if len(as) > 5 {
			t.Errorf("%s is taken for %v", code, as)
		}
	}
}

func TestScripts(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "123 !?": "", "ᏣᎳᎩ": "", "\xff\xfe": "",
		"ქართული": "ka", "한국어와 English": "ko", "请解释 HTTP 协议的三次握手": "zh",
		"東京タワー": "ja", "漢字": "zh", "ສະບາຍດີ": "lo", "សួស្តី": "km", "ਸਤ ਸ੍ਰੀ ਅਕਾਲ": "pa", "Բարև": "hy", "ሰላም": "am",
	} {
		if got, _ := Detect([]byte(text)); got != want {
			t.Errorf("%q is %q, not %q", text, got, want)
		}
	}
}

// One word is enough where it is a greeting; what could be any language is English.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"hola": "es", "danke": "de", "Merci": "fr", "ciao": "it", "obrigado": "pt", "Привет": "ru", "дякую": "uk",
		"ok": "en", "lol": "en", "Paris": "en", "print(x)": "en", "SELECT * FROM users": "en",
	} {
		if got, _ := Detect([]byte(text)); got != want {
			t.Errorf("%q is %q, not %q", text, got, want)
		}
	}
}

func TestCodes(t *testing.T) {
	codes := Codes()
	if len(codes) < 60 || !slices.Contains(codes, "en") || !slices.Contains(codes, "zh") || slices.Contains(codes, "") {
		t.Errorf("%d codes: %v", len(codes), codes)
	}
}

// wordsOfFile reads the words of the file, and the columns that have them, as language.py wrote them.
var wordsOfFile = sync.OnceValue(func() map[uint64]uint64 {
	b, first := file, 0
	for b[0] != 0 {
		var c columns
		c, b = readColumns(b, first)
		first += len(c.codes)
	}
	sets := int(binary.LittleEndian.Uint16(b[1:]))
	columns := b[3:]
	b = columns[8*sets:]
	n := int(binary.LittleEndian.Uint32(b))
	hashes := b[4:]
	words := make(map[uint64]uint64, n)
	for i := range n {
		of := int(binary.LittleEndian.Uint16(hashes[8*n+2*i:]))
		words[binary.LittleEndian.Uint64(hashes[8*i:])] = binary.LittleEndian.Uint64(columns[8*of:])
	}
	return words
})

// TestWordsOfFile: each has its place, with the columns that have it, and nothing else has one.
func TestWordsOfFile(t *testing.T) {
	tb, all := tables(), wordsOfFile()
	if _, ok := all[0]; ok || len(all) < 10_000 {
		t.Errorf("%d words, one with the hash 0: %v", len(all), ok)
	}
	for hash, columns := range all {
		if got := *tb.place(hash); got != (word{hash, columns}) {
			t.Errorf("the word %x is %x", hash, got)
		}
	}
	taken := 0
	for _, w := range tb.words {
		if w.hash != 0 {
			taken++
		}
	}
	if taken != len(all) {
		t.Errorf("%d words are in the table, %d in the file", taken, len(all))
	}
}

// sumTwin is what detect adds up, by its definition.
func (t *table) sumTwin(s script, lower string) []int32 {
	of := &t.scripts[s]
	sum := slices.Clone(of.prior)
	for i := range len(lower) {
		for n := 1; n <= 4 && i+n <= len(lower); n++ {
			var key [4]byte
			copy(key[:], lower[i:i+n])
			for _, slot := range of.slots {
				if slot.key != 0 && slot.key == binary.LittleEndian.Uint32(key[:]) {
					for k := range sum {
						sum[k] += int32(of.rows[int(slot.row)+k])
					}
				}
			}
		}
	}
	for _, word := range strings.FieldsFunc(lower, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		h := fnv.New64a()
		h.Write([]byte(word))
		has := wordsOfFile()[h.Sum64()]
		for k := range sum {
			sum[k] += int32(has>>(of.first+k)&1) * perWord * perNat
		}
	}
	return sum
}

// TestDetectIsTheSumOfGramsAndWords holds the quick way against the slow one.
func TestDetectIsTheSumOfGramsAndWords(t *testing.T) {
	tb := tables()
	texts := []string{"", "a", "ABC", "The \xff cat", "Ünïcödé İ ẞ K", strings.Repeat("the and of le la les und der ", 30)}
	for i, row := range sentences(t) {
		if i%5 == 0 {
			texts = append(texts, row[1])
		}
	}
	for _, text := range texts {
		valid := []byte(strings.ToValidUTF8(text, ""))
		lower := []byte(strings.Map(unicode.ToLower, string(valid)))
		if got := appendLower(nil, []byte(text)); !bytes.Equal(got, lower) {
			t.Fatalf("%q in small letters is %q, want %q", text, got, lower)
		}
		s := scriptOf([]byte(text))
		if s > bengali {
			continue
		}
		of := &tb.scripts[s]
		sum := slices.Clone(of.prior)
		of.addGrams(sum, lower)
		tb.addWords(sum, of.first, lower)
		if want := tb.sumTwin(s, string(lower)); !slices.Equal(sum, want) {
			t.Errorf("%q: sums %v, want %v", text, sum, want)
		}
	}
}

func TestDetectAllocatesNothing(t *testing.T) {
	text := []byte(strings.Repeat("Ein langer Text, der kein Ende nimmt. ", 1000))
	if n := testing.AllocsPerRun(100, func() { Detect(text) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDetect(b *testing.B) {
	text := []byte(strings.Repeat("Ein langer Text, der kein Ende nimmt. ", 30))
	for b.Loop() {
		Detect(text)
	}
}

func BenchmarkDetectQuestion(b *testing.B) {
	text := []byte("Why is the river near the mountain older than the engine of the garden and its bicycle?")
	for b.Loop() {
		Detect(text)
	}
}

func FuzzDetect(f *testing.F) {
	f.Add([]byte("Wie geht es dir?"))
	f.Add([]byte("\xf0\x9f"))
	f.Fuzz(func(t *testing.T, text []byte) {
		code, confidence := Detect(text)
		if confidence < 0 || confidence > 1 || code == "" != (confidence == 0) {
			t.Errorf("%q %v", code, confidence)
		}
	})
}
