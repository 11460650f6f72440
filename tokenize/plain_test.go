// The short way for plain words finds the same words as the patterns.

package tokenize

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// plainPieces are the parts of plain words, and characters that end a plain word or keep it from
// being one.
var plainPieces = []string{" ", " ", " ", "a", "to", "The", "THE", "iPhone", "don't", "I'LL", "it's", "X's", "naïve", "Ünder", "été", "abcdefg", "abcdefgh", "Abcdefghi",
	"'", "'", "1", "12", ".", ",", "\n", "\r\n", "\t", "日本", "_", "@", "[", "`", "{", "e\u0301", "\u2019s", "\u017f", "ǅ"}

func TestPlainWordsTwin(t *testing.T) {
	u, r := unicodes(), rand.New(rand.NewPCG(21, 22))
	scanners := []scanner{everywhere(&gpt2{u}), everywhere(&plain{u, setLetters, 3}), everywhere(&plain{u, setLetters | setMarks, 1}),
		everywhere(&cased{u, 3, true}), everywhere(&cased{u, 1, false}), isolated(u, &punctuated{u})}
	found, known := 0, 0
	cache := new(wordCache)
	for range 3000 {
		var text []byte
		for range 1 + r.IntN(12) {
			text = append(text, plainPieces[r.IntN(len(plainPieces))]...)
			if r.IntN(3) == 0 {
				text = append(text, ' ')
			}
		}
		cache.learn(text)
		for at, scan := range scanners {
			for i := range text {
				if !utf8.RuneStart(text[i]) {
					continue
				}
				if end := scan.plain.end(text, i); end > i {
					found++
					if _, to := scan.next(text, i); to != end {
						t.Fatalf("pattern %d: %q from %d: a word to %d, want %d", at, text, i, end, to)
					}
				}
				sizes, _ := cache.known(nil, text, i, scan.plain)
				for j, from := 0, i; j < len(sizes); j++ {
					known++
					_, to := scan.next(text, from)
					if from += int(sizes[j]); from != to {
						t.Fatalf("pattern %d: %q from %d: known to %d, want %d", at, text, i, from, to)
					}
				}
			}
		}
	}
	if found < 20_000 || known < 20_000 {
		t.Errorf("only %d words, %d known ones", found, known)
	}
}

// learn puts each part of the text of up to eight bytes into the cache, as one token whose id is
// the length of the part.
func (c *wordCache) learn(text []byte) {
	for i := range text {
		for end := i + 1; end <= min(i+8, len(text)); end++ {
			key := keyOf(text[i:end])
			c.put(&key, []uint32{uint32(end - i)})
		}
	}
}
