// The Unigram model beside a slow twin; its trie; its files.

package tokenize

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// slowUnigram is the definition: of all ways to cut a word it takes the one with the highest sum;
// of equal ones, the one with the longest last piece, then the longest piece before that, and so
// on. Unknown characters are tokens of their own here.
func slowUnigram(m *model, unknown uint32, w string) []uint32 {
	type way struct {
		score float64
		ids   []uint32
	}
	lowest := slices.Min(m.scores)
	best := make([]*way, len(w)+1)
	best[0] = &way{}
	for to := 1; to <= len(w); to++ {
		for from := range to {
			if best[from] == nil {
				continue
			}
			id, ok := m.tokens[w[from:to]]
			score := 0.0
			if ok {
				score = m.scores[id]
			} else if _, one := oneRune(w[from:to]); one {
				id, score, ok = unknown, lowest-unknownPenalty, true
			}
			if ok && (best[to] == nil || best[from].score+score > best[to].score) {
				best[to] = &way{best[from].score + score, append(slices.Clone(best[from].ids), id)}
			}
		}
	}
	return best[len(w)].ids
}

func TestUnigramTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	letters := []string{"a", "b", "é", "中", "😀"}
	word := func(most int) string {
		var b strings.Builder
		for range 1 + r.IntN(most) {
			b.WriteString(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	for range 400 {
		m := &model{tokens: map[string]uint32{}}
		for id := range 1 + r.IntN(40) {
			m.tokens[word(5)] = uint32(id)
			m.scores = append(m.scores, -float64(r.IntN(4000))/256)
		}
		unknown := uint32(len(m.scores))
		m.tokens["<unk>"], m.scores = unknown, append(m.scores, 0)
		u := &unigram{pieces: newTrie(m.tokens), scores: m.scores, unknown: unknown, unknownScore: slices.Min(m.scores) - unknownPenalty}
		l := &lattice{noted: true}
		for range 10 {
			w := word(24)
			want := slices.CompactFunc(slowUnigram(m, unknown, w), func(a, b uint32) bool { return a == b && a == unknown })
			got := u.word(nil, []byte(w), l)
			if !slices.Equal(got, want) {
				t.Fatalf("%v %v: %q:\n got %v\nwant %v", m.tokens, m.scores, w, got, want)
			}
			var back strings.Builder
			for _, p := range l.places {
				back.WriteString(w[p.from:p.to])
			}
			if len(l.places) != len(got) || back.String() != w {
				t.Fatalf("%q: %d tokens at %v", w, len(got), l.places)
			}
		}
	}
}

func TestTrie(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, letters := range []int{1, 2, 256} {
		keys := map[string]uint32{"": 0}
		for id := range uint32(3000) {
			key := make([]byte, 1+r.IntN(12))
			for i := range key {
				key[i] = byte(r.IntN(letters))
			}
			keys[string(key)] = id
		}
		pieces := newTrie(keys)
		for key, id := range keys {
			if got := pieces.find([]byte(key)); got != id && key != "" {
				t.Fatalf("%q: got %d, want %d", key, got, id)
			}
			other := key + string(rune(r.IntN(256)))
			if _, ok := keys[other]; !ok && pieces.find([]byte(other)) != noPiece {
				t.Fatalf("%q was found", other)
			}
		}
		if nodes := len(pieces); nodes > 1<<17 {
			t.Errorf("%d units", nodes)
		}
	}
}

// Scores are read as serde_json reads them: the last differs from what strconv says.
func TestScores(t *testing.T) {
	for _, c := range []struct {
		text string
		want float64
	}{
		{"0", 0}, {"-12", -12}, {"-3.4635426998138428", -3.4635426998138428}, {"-1.5e-2", -0.015}, {"1E3", 1000},
		{"123456789012345678901234567890", 12345678901234567890 * 1e10}, {"0.00000000000000000000001", 1.0000000000000001e-23},
	} {
		got, err := (&jsonReader{data: []byte(c.text)}).number()
		if err != nil || got != c.want {
			t.Errorf("%s: got %v, %v, want %v", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{"", "x", "1.", "01", "--1", "1e400", "1e99999999999", `"1"`, "null", "NaN", "Infinity"} {
		if got, err := (&jsonReader{data: []byte(text)}).number(); err == nil {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

const unigramModel = `{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1],["b",-2],["ab",-2.5],["▁",-3],["▁a",-3.5]]}`

// unigramFile has a charsmap.
func unigramFile(charsmap []byte) []byte {
	return smallFile(map[string]string{
		"normalizer": fmt.Sprintf(`{"type":"Precompiled","precompiled_charsmap":%q}`, base64.StdEncoding.EncodeToString(charsmap)),
		"model":      unigramModel,
	})
}

// charsmapOf returns a table in which each key is one byte, and all keys have the same value.
func charsmapOf(value string) []byte {
	trie := make([]uint32, 1024)
	trie[0] = 256 << 10
	for c := uint32(1); c < 256; c++ {
		at := 256 ^ c
		trie[at] = (at^512)<<10 | dartsEnds | c
	}
	trie[512] = dartsValue
	data := binary.LittleEndian.AppendUint32(nil, uint32(4*len(trie)))
	for _, unit := range trie {
		data = binary.LittleEndian.AppendUint32(data, unit)
	}
	return append(data, value+"\x00"...)
}

func TestUnigramFiles(t *testing.T) {
	good := charsmapOf("ab")
	changed := func(at int, to byte) []byte {
		data := slices.Clone(good)
		data[at] = to
		return data
	}
	var many strings.Builder
	for i := range maxPieces/500 + 1 {
		fmt.Fprintf(&many, `,["%0500d",0]`, i)
	}
	model := func(text string) []byte { return smallFile(map[string]string{"model": text}) }
	for _, c := range []struct {
		data []byte
		says string
	}{
		{unigramFile(good), ""},
		{unigramFile(nil), "normalizer: precompiled_charsmap: no table"},
		{unigramFile(good[:100]), "normalizer: precompiled_charsmap: a trie of 4096 bytes, and 96 are there"},
		{unigramFile(changed(len(good)-2, 0xff)), "normalizer: precompiled_charsmap: values that are no UTF-8"},
		{unigramFile(changed(4+4*512, 99)), "normalizer: precompiled_charsmap: a key without a value"},
		{unigramFile(charsmapOf(strings.Repeat("a", 65))), "normalizer: normalizers that make a text more than 64 times as long: not supported"},
		{[]byte(strings.Replace(string(unigramFile(good)), `charsmap":"`, `charsmap":"!`, 1)), "normalizer: precompiled_charsmap: illegal base64 data at input byte 0"},
		{model(`{"type":"Unigram","unk_id":0,"vocab":[]}`), "model: unk_id 0 is not in the vocabulary"},
		{model(`{"type":"Unigram","unk_id":-1,"vocab":[["a",0]]}`), "model: unk_id -1 is not in the vocabulary"},
		{model(`{"type":"Unigram","unk_id":0,"vocab":{"a":0}}`), "model: vocab is no list of pieces and scores"},
		{model(`{"type":"WordPiece","vocab":[["[UNK]",0]]}`), "model: vocab is a list of pieces and scores"},
		{model(`{"type":"BPE","merges":[],"vocab":[["[UNK]",0]]}`), "model: vocab is a list of pieces and scores"},
		{model(`{"type":"Unigram","unk_id":0,"vocab":[["a"]]}`), "model: vocab: piece 0: byte 165: not a piece and its score"},
		{model(`{"type":"Unigram","unk_id":0,"vocab":[["a",1,2]]}`), "model: vocab: piece 0: byte 167: more than a piece and its score"},
		{model(`{"type":"Unigram","unk_id":0,"vocab":[["a","b"]]}`), "model: vocab: piece 0: byte 165: a number was expected"},
		{model(`{"type":"Unigram","unk_id":0,"vocab":[["a",1e999]]}`), "model: vocab: piece 0: byte 165: a number was expected"},
		{model(`{"type":"Unigram","unk_id":0,"vocab":[["a",1]` + many.String() + `]}`), "model: more than 33554432 bytes of pieces: not supported"},
		{model(`{"type":"Unigram","unk_id":0,"vocab":[["` + strings.Repeat("a", 513) + `",1]]}`),
			`model: a piece of 513 bytes (512 are the most), "` + strings.Repeat("a", 40) + `": not supported`},
	} {
		_, err := Read(c.data)
		if got := fmt.Sprint(err); c.says == "" && err != nil || c.says != "" && got != c.says {
			t.Errorf("%.300s:\n got %v\nwant %s", c.data, err, c.says)
		}
	}
}

// A trie that leads in a circle, or out of the array, is no trouble.
func TestCharsmapOfNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	text := []byte("ab \x01\u00a0é e\u0301 中")
	for range 300 {
		data := binary.LittleEndian.AppendUint32(nil, 4*512)
		for range 512 {
			data = binary.LittleEndian.AppendUint32(data, uint32(r.IntN(256))|uint32(r.IntN(2))<<8|uint32(r.IntN(2))<<9|uint32(r.IntN(600))<<10)
		}
		data = append(data, "a\x00bc\x00"...)
		tokenizer, err := Read(unigramFile(data))
		if err != nil {
			continue
		}
		ids, _ := tokenizer.AppendSpans(nil, nil, text)
		if want := tokenizer.Append(nil, text, false); !slices.Equal(ids, want) {
			t.Errorf("got %v, want %v", ids, want)
		}
	}
}

// The worst case: a word of 64 KB in which each place costs maxPiece steps.
func TestUnigramOfGiants(t *testing.T) {
	var vocab strings.Builder
	for size := 1; size <= maxPiece; size *= 2 {
		fmt.Fprintf(&vocab, `,["%s",-%d.5]`, strings.Repeat("a", size), size)
	}
	tokenizer, err := Read(smallFile(map[string]string{"model": `{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0]` + vocab.String() + `]}`}))
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"a", "ab", "中", strings.Repeat("a", 511) + "b"} {
		text := []byte(strings.Repeat(run, 1<<16/len(run)))
		l := &lattice{noted: true}
		ids := tokenizer.unigram.word(nil, text, l)
		at := 0
		for _, p := range l.places {
			if p.from != at {
				t.Fatalf("%.10q: a token at %d, want %d", run, p.from, at)
			}
			at = p.to
		}
		if at != len(text) || len(ids) != len(l.places) {
			t.Errorf("%.10q: %d tokens to %d of %d", run, len(ids), at, len(text))
		}
	}
}
