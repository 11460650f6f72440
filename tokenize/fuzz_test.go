// Untrusted files and texts.

package tokenize

import (
	"bytes"
	"slices"
	"testing"
)

// smallFiles have, together, every kind of part. They are small, because the fuzzer begins by
// shrinking its seeds.
var smallFiles = []map[string]string{
	{"added": `[{"content":"ab","lstrip":true,"rstrip":true,"single_word":true,"normalized":true},{"content":"<s>"}]`},
	{"normalizer": `{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"b"},{"type":"Replace","pattern":{"String":" "},"content":"a"}]}`},
	{"normalizer": `{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true}`,
		"pre":   `{"type":"BertPreTokenizer"}`,
		"model": `{"type":"WordPiece","vocab":{"[UNK]":0,"a":1,"##b":2},"max_input_chars_per_word":9}`,
		"post":  `{"type":"BertProcessing","cls":["a",1],"sep":["b",2]}`},
	{"normalizer": `{"type":"NFC"}`, "pre": `{"type":"ByteLevel","add_prefix_space":true}`,
		"model": `{"type":"BPE","unk_token":"a","fuse_unk":true,"ignore_merges":true,"vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]}`},
	{"pre": `{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\p{N}{1,3}"},"behavior":"Isolated","invert":false},` +
		`{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]}`},
	{"pre": `{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true}`,
		"model": `{"type":"BPE","unk_token":"b","byte_fallback":true,"vocab":{"a":0,"b":1,"ab":2,"<0x20>":3,"▁":4},"merges":["a b"]}`,
		"post":  `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"a"}},{"Sequence":{"id":"A"}}],"special_tokens":{"a":{"ids":[0]}}}`},
	{"normalizer": `{"type":"Sequence","normalizers":[{"type":"Strip","strip_left":true,"strip_right":true},{"type":"NFKC"},{"type":"NFKD"},` +
		`{"type":"StripAccents"},{"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "},` +
		`{"type":"Precompiled","precompiled_charsmap":"CAAAAAABAAAAAAAAYQA="}]}`,
		"pre":   `{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"}]}`,
		"model": `{"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":[["<unk>",0],["a",-1.5],["▁",-2],["<0xC3>",0],["<0xA9>",0]]}`,
		"post":  `{"type":"RobertaProcessing","cls":["a",1],"sep":["▁",2],"trim_offsets":true}`},
}

// Any bytes give a tokenizer or an error. A tokenizer takes any text, and gives the same tokens
// the second time.
func FuzzRead(f *testing.F) {
	for _, parts := range smallFiles {
		f.Add(smallFile(parts))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tokenizer, err := Read(data)
		if err != nil {
			return
		}
		text := []byte(" ab abab\ta  é\xff e\u0301 1234 中文 <s>x</s> 'S ")
		cold := tokenizer.Append(nil, text, true)
		if warm := tokenizer.Append(nil, text, true); !slices.Equal(cold, warm) {
			t.Errorf("first %v, then %v", cold, warm)
		}
		checkSpans(t, "read", tokenizer, text)
		tokenizer.FramePair(nil, nil, cold, cold)
	})
}

// Where nothing is normalised, the tokens of a text spell it. Words from the cache give the same
// tokens as before they were cached. What dst already holds stays.
func FuzzAppend(f *testing.F) {
	for _, s := range sentences {
		f.Add([]byte(s))
	}
	f.Add([]byte("\xe2\x82 <s>\xff</s>"))
	names := fixtureNames(f)
	all := map[string]*Tokenizer{}
	for _, name := range names {
		all[name] = fixture(f, name)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, name := range names {
			tokenizer := all[name]
			first := tokenizer.Append(nil, text, false)
			again := tokenizer.Append([]uint32{1, 2}, text, false)
			if !slices.Equal(again[2:], first) || again[0] != 1 || again[1] != 2 {
				t.Errorf("%s: first %v, then %v", name, first, again)
			}
			checkSpans(t, name, tokenizer, text)
			if tokenizer.bpe == nil || tokenizer.bpe.bytes == nil || tokenizer.prefixSpace || len(tokenizer.normalisers) > 0 {
				continue
			}
			var back []byte
			for _, id := range first {
				back = tokenizer.AppendBytes(back, id)
			}
			if want := appendValid(nil, text); !bytes.Equal(back, want) {
				t.Errorf("%s: %q came back as %q", name, want, back)
			}
		}
	})
}
