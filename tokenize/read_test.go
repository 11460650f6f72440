// What is wrong with a tokenizer.json, and where.

package tokenize

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// smallFile is a small tokenizer.json of parts; those not given are null or an empty list.
func smallFile(parts map[string]string) []byte {
	or := func(name, otherwise string) string {
		if s, ok := parts[name]; ok {
			return s
		}
		return otherwise
	}
	return fmt.Appendf(nil, `{"version":"1.0","truncation":null,"added_tokens":%s,"normalizer":%s,"pre_tokenizer":%s,"post_processor":%s,"model":%s}`,
		or("added", "[]"), or("normalizer", "null"), or("pre", "null"), or("post", "null"),
		or("model", `{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}`))
}

func TestReadErrors(t *testing.T) {
	const (
		split     = `{"type":"Split","pattern":{"Regex":%q},"behavior":%q,"invert":false}`
		byteLevel = `{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}`
	)
	one := func(name, value string) []byte { return smallFile(map[string]string{name: value}) }
	for _, c := range []struct {
		name        string
		data        []byte
		unsupported bool
		want        string
	}{
		{"nothing", nil, false, "byte 0: an object was expected"},
		{"no object", []byte("[]"), false, "byte 0: an object was expected"},
		{"cut off", []byte(`{"model":{"vocab":{"a":1`), false, `model: vocab: byte 24: a comma or the end of the object was expected`},
		{"more behind", []byte(`{} x`), false, "byte 3: more after the end"},
		{"deep", []byte(`{"x":` + strings.Repeat("[", 100)), false, "x: byte 36: nested too deep"},
		{"half a pair", []byte(`{"x":"\ud800"}`), false, "x: byte 12: half a surrogate pair"},
		{"no UTF-8", []byte("{\"x\":\"\xff\"}"), false, "x: byte 6: a string that is no UTF-8"},
		{"version", []byte(`{"version":"2.0"}`), true, `version: "2.0": not supported`},
		{"empty", []byte(`{}`), false, "model: there is no vocab"},
		{"unigram without unk_id", one("model", `{"type":"Unigram","vocab":[["a",-1.5]]}`), true, `model: unk_id "null": not supported`},
		{"word level", one("model", `{"type":"WordLevel","vocab":{"a":1}}`), true, `model: type "WordLevel": not supported`},
		{"negative id", one("model", `{"type":"BPE","vocab":{"a":-1},"merges":[]}`), false,
			`model: vocab: token "a": byte 149: not a number from 0 to 4294967295`},
		{"broken id", one("model", `{"type":"BPE","vocab":{"a":1.5},"merges":[]}`), false,
			`model: vocab: token "a": byte 150: not a number from 0 to 4294967295`},
		{"huge id", one("model", `{"type":"BPE","vocab":{"a":4194304},"merges":[]}`), false, `model: vocab: byte 156: token "a" has an id over 4194303`},
		{"far id", one("model", `{"type":"BPE","vocab":{"a":70000},"merges":[]}`), true,
			`model: 1 tokens, and the id 70000 of "a": not supported`},
		{"merge of one", one("model", `{"type":"BPE","vocab":{"a":0},"merges":["a"]}`), false, "model: merges: merge 0: byte 165: not two tokens"},
		{"merge of three", one("model", `{"type":"BPE","vocab":{"a":0},"merges":[["a","a","a"]]}`), false, "model: merges: merge 0: byte 175: not two tokens"},
		{"merges of both kinds", one("model", `{"type":"BPE","vocab":{"a":0,"aa":1},"merges":["a a",["a","a"]]}`), false,
			"model: merges: byte 175: merges as strings and as pairs"},
		{"merge of nothing", one("model", `{"type":"BPE","vocab":{"a":0},"merges":["a x"]}`), false,
			`model: merges: merge 0: byte 167: token "x" is not in the vocabulary`},
		{"merges before the vocabulary", one("model", `{"type":"BPE","merges":["a x"],"vocab":{"a":0}}`), false,
			`model: merges: merge 0: byte 151: token "x" is not in the vocabulary`},
		{"no merges", one("model", `{"type":"BPE","vocab":{"a":0}}`), false, "model: there are no merges"},
		{"dropout", one("model", `{"type":"BPE","dropout":0.1,"vocab":{"a":0},"merges":[]}`), true, `model: dropout "0.1": not supported`},
		{"prefix", one("model", `{"type":"BPE","continuing_subword_prefix":"##","vocab":{"a":0},"merges":[]}`), true,
			`model: continuing_subword_prefix "##": not supported`},
		{"suffix", one("model", `{"type":"BPE","end_of_word_suffix":"</w>","vocab":{"a":0},"merges":[]}`), true,
			`model: end_of_word_suffix "</w>": not supported`},
		{"unknown token", one("model", `{"type":"BPE","unk_token":"?","vocab":{"a":0},"merges":[]}`), false, `model: unk_token "?" is not in the vocabulary`},
		{"unknown word", one("model", `{"type":"WordPiece","vocab":{"a":0}}`), false, `model: unk_token "[UNK]" is not in the vocabulary`},
		{"long words", one("model", `{"type":"WordPiece","max_input_chars_per_word":100000,"vocab":{"[UNK]":0}}`), true,
			`model: max_input_chars_per_word "100000": not supported`},
		{"pattern", one("pre", fmt.Sprintf(split, `\w+`, "Isolated")), true, `pre_tokenizer: Split with the pattern "\\w+": not supported`},
		{"behavior", one("pre", fmt.Sprintf(split, `\p{N}`, "Removed")), true, `pre_tokenizer: Split with behavior "Removed": not supported`},
		{"split at a string", one("pre", `{"type":"Split","pattern":{"String":" "},"behavior":"Isolated","invert":false}`), true,
			`pre_tokenizer: Split with the string " ": not supported`},
		{"pre-tokenizer", one("pre", `{"type":"Sequence","pretokenizers":[{"type":"Punctuation"}]}`), true, `pre_tokenizer: 0: type "Punctuation": not supported`},
		{"behind bytes", one("pre", `{"type":"Sequence","pretokenizers":[`+byteLevel+`,`+byteLevel+`]}`), true,
			`pre_tokenizer: 1: behind ByteLevel "ByteLevel": not supported`},
		{"metaspace", one("pre", `{"type":"Metaspace","replacement":"__"}`), false, `pre_tokenizer: replacement "__" is not one character`},
		{"normalizer", one("normalizer", `{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Nmt"}]}`), true, `normalizer: 1: type "Nmt": not supported`},
		{"replace", one("normalizer", `{"type":"Replace","pattern":{"Regex":" +"},"content":" "}`), true,
			`normalizer: Replace with the pattern " +": not supported`},
		{"empty pattern", one("normalizer", `{"type":"Replace","pattern":{"String":""},"content":" "}`), true,
			`normalizer: Replace with the pattern "": not supported`},
		{"prepend nothing", one("normalizer", `{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":""},{"type":"NFC"}]}`), true,
			`normalizer: 0: Prepend of the text "": not supported`},
		{"long added token", one("added", `[{"content":"`+strings.Repeat("x", 600)+`","normalized":false}]`), true,
			`added_tokens: added token "` + strings.Repeat("x", 40) + `" of 600 bytes (1 to 512 are): not supported`},
		{"added tokens", one("added", `[{"content":5}]`), false,
			"added_tokens: before byte 65: json: cannot unmarshal number into Go struct field addedToken.content of type string"},
		{"post-processor", one("post", `{"type":"Other"}`), true, `post_processor: type "Other": not supported`},
		{"template", one("post", `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}}],"special_tokens":{}}`), false,
			`post_processor: single 0: special token "<s>" is not given`},
		{"template without a text", one("post", `{"type":"TemplateProcessing","single":[],"special_tokens":{}}`), true,
			`post_processor: single with the text times "0": not supported`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(c.data)
			if err == nil || err.Error() != c.want {
				t.Fatalf("got  %v\nwant %s", err, c.want)
			}
			if errors.Is(err, ErrUnsupported) != c.unsupported {
				t.Errorf("ErrUnsupported: %v", !c.unsupported)
			}
		})
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tokenizer.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path)
	want := fmt.Sprintf("cannot read tokenizer %q: byte 1: a string was expected", path)
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(pipe); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("of a pipe: %v", err)
	}
	if _, err = Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err = Open(dir); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Error(err)
	}
}

// Merges written as strings, as pairs, or before the vocabulary give the same tokenizer.
func TestMergesOfEachKind(t *testing.T) {
	for _, model := range []string{
		`{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"abab":3},"merges":["a b","ab ab"]}`,
		`{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"abab":3},"merges":[["a","b"],["ab","ab"]]}`,
		`{"merges":[["a","\u0062"],["ab","ab"]],"vocab":{"a":0,"b":1,"ab":2,"abab":3}}`,
	} {
		tokenizer, err := Read(smallFile(map[string]string{"model": model}))
		if err != nil {
			t.Fatal(err)
		}
		if got := tokenizer.Append(nil, []byte("ababab"), true); !slices.Equal(got, []uint32{3, 2}) {
			t.Errorf("%s: %v", model, got)
		}
	}
}

// For prepend_scheme "first" the library goes by where a piece came from in the original text,
// not by where it is now. A file in which the two may differ is refused.
func TestMetaspaceFirst(t *testing.T) {
	const (
		drops   = `pre_tokenizer: with a normalizer that may drop the first character, prepend_scheme "first": not supported`
		grows   = `pre_tokenizer: with added tokens of the normalised text and a normalizer that may make several characters of one, prepend_scheme "first": not supported`
		raw     = `[{"content":"<s>"}]`
		added   = `[{"content":"<s>","normalized":true}]`
		bert    = `{"type":"BertNormalizer","clean_text":%t,"handle_chinese_chars":%t,"strip_accents":%t,"lowercase":%t}`
		replace = `{"type":"Replace","pattern":{"String":%q},"content":%q}`
	)
	for _, c := range []struct{ normalizer, added, want string }{
		{`null`, added, ""},
		{fmt.Sprintf(replace, "é", "b"), added, ""},
		{fmt.Sprintf(replace, "é", "bb"), raw, ""},
		{fmt.Sprintf(replace, "é", "bb"), added, grows},
		{fmt.Sprintf(replace, "é", ""), raw, drops},
		{fmt.Sprintf(replace, "ab", "b"), raw, drops},
		{fmt.Sprintf(bert, true, false, false, false), raw, drops},
		{fmt.Sprintf(bert, false, false, true, false), raw, drops},
		{fmt.Sprintf(bert, false, true, false, true), raw, ""},
		{fmt.Sprintf(bert, false, true, false, false), added, grows},
		{`{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Lowercase"},{"type":"NFD"},{"type":"Prepend","prepend":"a"}]}`, raw, ""},
		{`{"type":"Sequence","normalizers":[{"type":"NFD"}]}`, added, grows},
	} {
		for _, scheme := range []string{"first", "always"} {
			pre := fmt.Sprintf(`{"type":"Metaspace","replacement":"▁","prepend_scheme":%q,"split":true}`, scheme)
			_, err := Read(smallFile(map[string]string{"normalizer": c.normalizer, "added": c.added, "pre": pre}))
			want := c.want
			if scheme == "always" {
				want = ""
			}
			if (err == nil) != (want == "") || err != nil && (err.Error() != want || !errors.Is(err, ErrUnsupported)) {
				t.Errorf("%s, added %s, %s:\ngot  %v\nwant %s", c.normalizer, c.added, scheme, err, want)
			}
		}
	}
}

// The small files that the fuzzer begins with are good.
func TestSmallFiles(t *testing.T) {
	for _, parts := range smallFiles {
		if _, err := Read(smallFile(parts)); err != nil {
			t.Errorf("%v: %v", parts, err)
		}
	}
}
