package encoder

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// long is a text of more tokens than a net of testdata reads at a time.
var long = []byte(strings.Repeat("The cat sat on the mat and the dog in the fog. ", 40))

// A long text is read in windows that overlap and leave nothing out.
func TestWindows(t *testing.T) {
	e := mustOpen(t, "testdata/bert", inInt8)
	room := e.net.most - e.tokenizer.Around(false)
	for _, n := range []int{0, 1, room - 1, room, room + 1, 2*room - overlap, 2*room - overlap + 1, 1000} {
		seen, last, count := 0, -1, 0
		err := e.windows(n, func(w window) error {
			if w.from > seen || w.to-w.from > room || w.from <= last {
				return fmt.Errorf("window [%d, %d) after %d", w.from, w.to, seen)
			}
			seen, last, count = w.to, w.from, count+1
			return nil
		})
		if err != nil || seen != n || n <= room != (count == 1) {
			t.Errorf("%d tokens: %v, %d are read in %d windows", n, err, seen, count)
		}
	}
}

// Each token of a long text has a label, in order.
func TestTagLong(t *testing.T) {
	for _, name := range []string{"bert-tokens", "xlm-roberta-tokens", "modernbert-tokens", "deberta-v2-tokens"} {
		e, s := mustOpen(t, filepath.Join("testdata", name), inInt8), new(Scratch)
		labels, err := e.Tag(nil, long, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, spans := e.tokenizer.AppendSpans(nil, nil, long)
		if len(labels) != len(spans) {
			t.Fatalf("%s: %d labels for %d tokens", name, len(labels), len(spans))
		}
		for i, l := range labels {
			if l.Span != spans[i] || l.Label < 0 || l.Label >= len(e.Labels) || !(l.Score > 0 && l.Score <= 1) {
				t.Fatalf("%s: label %d is %+v, its place %v", name, i, l, spans[i])
			}
		}
	}
}

// Nothing is allocated once the memory has grown.
func TestAllocations(t *testing.T) {
	e, s := mustOpen(t, "testdata/deberta-v3", inInt8), new(Scratch)
	judge := func() {
		if err := e.Classify(func([]float32) {}, long, s, nil); err != nil {
			t.Fatal(err)
		}
	}
	judge()
	if n := testing.AllocsPerRun(20, judge); n > 8 { // a few functions of a window
		t.Errorf("%v allocations", n)
	}
}

// stop is asked between layers, and its error is what comes out.
func TestStop(t *testing.T) {
	ended := errors.New("ended")
	e, asked := mustOpen(t, "testdata/bert", inInt8), 0
	err := e.Classify(func([]float32) { t.Error("judged") }, []byte("Hello world."), new(Scratch), func() error {
		if asked++; asked == 2 {
			return ended
		}
		return nil
	})
	if !errors.Is(err, ended) || asked != 2 {
		t.Errorf("%v after %d layers", err, asked)
	}
}

// A Scratch that other nets have used gives the same results.
func TestScratchIsShared(t *testing.T) {
	shared := new(Scratch)
	for _, name := range []string{"deberta-v3", "bert", "modernbert", "roberta", "bert"} {
		e := mustOpen(t, filepath.Join("testdata", name), inInt8)
		var got, want []float32
		for s, dst := range map[*Scratch]*[]float32{shared: &got, new(Scratch): &want} {
			if err := e.Classify(func(p []float32) { *dst = append(*dst, p...) }, long, s, nil); err != nil {
				t.Fatal(err)
			}
		}
		if distance(got, want) != 0 {
			t.Errorf("%s: %v, alone %v", name, got, want)
		}
	}
}

// damaged copies a model with one file changed.
func damaged(t testing.TB, from, file string, change func(data []byte) []byte) string {
	dir := t.TempDir()
	for _, name := range []string{"config.json", "tokenizer.json", "model.safetensors"} {
		data, err := os.ReadFile(filepath.Join("testdata", from, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == file {
			if data = change(data); data == nil {
				continue
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// replaced changes a field of config.json.
func replaced(key string, value any) func([]byte) []byte {
	return func(data []byte) []byte {
		var fields map[string]any
		if err := json.Unmarshal(data, &fields); err != nil {
			panic(err)
		}
		fields[key] = value
		data, err := json.Marshal(fields)
		if err != nil {
			panic(err)
		}
		return data
	}
}

func none([]byte) []byte { return nil }

func cut(data []byte) []byte { return data[:len(data)/2] }

// renamed changes a tensor's name in the header, to one of the same length.
func renamed(from, to string) func([]byte) []byte {
	return func(data []byte) []byte { return bytes.Replace(data, []byte(from), []byte(to), 1) }
}

// notFinite makes the last value of the file none.
func notFinite(data []byte) []byte {
	binary.LittleEndian.PutUint32(data[len(data)-4:], 0x7fc00000)
	return data
}

// huge makes every value of the file so large that sums are no numbers.
func huge(data []byte) []byte {
	for i := len(data) - 4096; i < len(data); i += 4 {
		binary.LittleEndian.PutUint32(data[i:], 0x7f000000)
	}
	return data
}

func TestDamaged(t *testing.T) {
	for _, row := range []struct {
		model, file string
		change      func([]byte) []byte
		want        string
	}{
		{"bert", "config.json", none, "config.json: no such file or directory"},
		{"bert", "tokenizer.json", none, "tokenizer.json: no such file or directory"},
		{"bert", "model.safetensors", none, "model.safetensors: no such file or directory"},
		{"bert", "config.json", cut, "cannot read config.json"},
		{"bert", "tokenizer.json", cut, "tokenizer.json"},
		{"bert", "model.safetensors", cut, `cannot read tensor "`},
		{"bert", "model.safetensors", func([]byte) []byte { return []byte("abc") }, "too few for a header"},
		{"bert", "model.safetensors", notFinite, "is not finite"},
		{"bert", "model.safetensors", huge, "values that are no numbers"},
		{"bert", "tokenizer.json", replaced("post_processor", nil), "puts nothing around a text"},
		{"bert", "config.json", replaced("num_labels", -1), "num_labels is -1"},
		{"deberta-v3", "config.json", replaced("max_relative_positions", 3), "max_relative_positions 3"},
		{"bert", "model.safetensors", renamed("bert.encoder.layer.1.output.dense.bias", "bert.encoder.layer.1.output.dense.bia5"), `"bert.encoder.layer.1.output.dense.bias": no such tensor`},
		{"bert", "config.json", replaced("model_type", "gpt2"), `model_type "gpt2" is not supported: these are: bert, camembert`},
		{"bert", "config.json", replaced("architectures", []string{"BertForQuestionAnswering"}), "ForSequenceClassification"},
		{"bert", "config.json", replaced("hidden_size", 64), `"bert.embeddings.token_type_embeddings.weight": it is F32 [2 32], want floats of the shape [2 64]`},
		{"bert", "config.json", replaced("hidden_size", 1<<40), "hidden_size is 1099511627776, not from 1 to 16384"},
		{"bert", "config.json", replaced("hidden_size", -16), "hidden_size is -16"},
		{"bert", "config.json", replaced("hidden_size", 40), "no multiple of 16"},
		{"bert", "config.json", replaced("num_attention_heads", 16), "no multiple of 4"},
		{"bert", "config.json", replaced("num_attention_heads", 3), "no multiple of 4"},
		{"bert", "config.json", replaced("num_hidden_layers", 4), `"bert.encoder.layer.3.attention.self.query.weight": no such tensor`},
		{"bert", "config.json", replaced("vocab_size", 10), `tokenizer.json has tokens up to 199, the vocabulary of config.json 10`},
		{"bert", "config.json", replaced("max_position_embeddings", 2), `"bert.embeddings.position_embeddings.weight"`},
		{"bert", "config.json", replaced("hidden_act", "swiglu"), "hidden_act swiglu is"},
		{"bert", "config.json", replaced("layer_norm_eps", 0), "epsilon"},
		{"bert", "config.json", replaced("type_vocab_size", -1), "type_vocab_size is -1"},
		{"bert", "config.json", replaced("position_embedding_type", "relative_key"), "relative_key"},
		{"bert", "config.json", replaced("problem_type", "multi_label_classification"), "multi_label_classification"},
		{"bert", "config.json", replaced("id2label", map[string]string{"0": "a", "7": "b"}), "id2label"},
		{"bert", "config.json", replaced("id2label", map[string]string{"0": "a"}), "2 at least"},
		{"bert", "config.json", replaced("id2label", map[string]string{"0": "a", "1": "b"}), `"classifier.weight": it is F32 [3 32]`},
		{"roberta", "config.json", replaced("pad_token_id", -3), "pad_token_id is -3"},
		{"roberta", "config.json", replaced("pad_token_id", 150), "that is -21 tokens"},
		{"modernbert", "config.json", replaced("layer_types", []string{"full_attention"}), "1 layer_types for 5 layers"},
		{"modernbert", "config.json", replaced("rope_parameters", map[string]any{"full_attention": map[string]any{"rope_type": "yarn"}}), "rope_type yarn"},
		{"modernbert", "config.json", replaced("classifier_pooling", "max"), "classifier_pooling max"},
		{"deberta-v3", "config.json", replaced("conv_kernel_size", 3), "conv_kernel_size"},
		{"deberta-v3", "config.json", replaced("pos_att_type", "c2p|p2p"), "pos_att_type p2p"},
		{"deberta-v3", "config.json", replaced("position_buckets", 1<<30), "position_buckets"},
		{"deberta-v3", "config.json", replaced("position_buckets", 16), `"deberta.encoder.rel_embeddings.weight"`},
		{"deberta-v3", "config.json", replaced("embedding_size", 24), "embedding_size is 24"},
	} {
		e, err := Open(damaged(t, row.model, row.file, row.change))
		if err == nil || !strings.Contains(err.Error(), row.want) || e != nil {
			t.Errorf("%s with another %s: %v, want %s", row.model, row.file, err, row.want)
		}
	}
	for name, want := range map[string]string{"pytorch_model.bin": "save the model as safetensors", "model.safetensors.index.json": "in several parts"} {
		dir := damaged(t, "bert", "model.safetensors", none)
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Describe(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What transformers leaves out of config.json is as it has it by itself.
func TestDefaults(t *testing.T) {
	for _, row := range []struct {
		model, key string
		value      any
	}{
		{"bert", "hidden_act", nil}, {"bert", "layer_norm_eps", nil}, {"bert", "pad_token_id", nil},
		{"modernbert", "position_embedding_type", "sans_pos"}, {"modernbert", "pad_token_id", nil},
	} {
		if _, err := Open(damaged(t, row.model, "config.json", replaced(row.key, row.value))); err != nil {
			t.Errorf("%s with %s %v: %v", row.model, row.key, row.value, err)
		}
	}
	s, err := Describe(damaged(t, "bert", "config.json", replaced("id2label", nil)))
	if got := fmt.Sprint(s.Labels, err); got != "[LABEL_0 LABEL_1] <nil>" {
		t.Errorf("without labels: %s", got)
	}
}

func TestPooling(t *testing.T) {
	for _, row := range []struct {
		text, want string
	}{
		{`{"word_embedding_dimension": 384, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}`, "true <nil>"},
		{`{"pooling_mode_cls_token": true}`, "false <nil>"},
		{`{"pooling_mode": "mean", "include_prompt": true}`, "true <nil>"},
		{`{"pooling_mode": "cls"}`, "false <nil>"},
		{`{"pooling_mode": ["mean"]}`, "true <nil>"},
		{`{}`, "true <nil>"},
		{`{"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true}`, "pooling by max and mean is not supported"},
		{`{"pooling_mode": "lasttoken"}`, "pooling by lasttoken is not supported"},
		{`[]`, "cannot read"},
	} {
		mean, err := meanOf([]byte(row.text))
		if got := fmt.Sprint(mean, " ", err); !strings.Contains(got, row.want) {
			t.Errorf("%s: %s, want %s", row.text, got, row.want)
		}
	}
}

// Labels may stand in a file beside, as Semantic Router's models have them.
func TestMappings(t *testing.T) {
	dir := damaged(t, "bert", "config.json", replaced("id2label", map[string]string{"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}))
	for _, row := range []struct{ text, want string }{
		{`{"label_to_idx": {"benign": 0}, "idx_to_label": {"0": "benign", "1": "jailbreak", "2": "other"}}`, "[benign jailbreak other]"},
		{`{"category_to_idx": {}, "idx_to_category": {"2": "law", "1": "math", "0": "biology"}}`, "[biology math law]"},
		{`{}`, "jailbreak_type_mapping.json: it has none of"},
		{`{"idx_to_label": {"0": "a", "00": "b"}}`, "has the number"},
		{`[`, "jailbreak_type_mapping.json"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "jailbreak_type_mapping.json"), []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Describe(dir)
		if got := fmt.Sprint(s.Labels, err); !strings.Contains(got, row.want) {
			t.Errorf("%s: %s, want %s", row.text, got, row.want)
		}
	}
}

// FuzzOpen: whatever the files are, there is an error or an encoder that judges.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{"bert", "roberta", "modernbert", "deberta-v3"} {
		config, err := os.ReadFile(filepath.Join("testdata", name, "config.json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(name, config, 0, uint8(0), 0)
		f.Add(name, config, 40, uint8(7), 100)
	}
	f.Fuzz(func(t *testing.T, name string, config []byte, at int, flip uint8, keep int) {
		if strings.ContainsAny(name, "/.") || len(config) > 1<<14 {
			return
		}
		if _, err := os.Stat(filepath.Join("testdata", name, "config.json")); err != nil {
			return
		}
		dir := damaged(t, name, "model.safetensors", func(data []byte) []byte {
			if at >= 0 && at < len(data) {
				data[at] ^= flip
			}
			if keep > 0 && keep < len(data) {
				data = data[:len(data)-keep]
			}
			return data
		})
		if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := Open(dir)
		if err != nil {
			return
		}
		s := new(Scratch)
		switch e.Task {
		case Sequence:
			err = e.Classify(func([]float32) {}, long[:100], s, nil)
		case Token:
			_, err = e.Tag(nil, long[:100], s, nil)
		default:
			_, err = e.Embed(nil, long[:100], s, nil)
		}
		if err != nil {
			t.Error(err)
		}
	})
}
