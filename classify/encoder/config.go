// What config.json says, and the label files that stand beside it.

package encoder

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Limits of a model that somebody else made.
const (
	maxText   = 8 << 20 // bytes of a JSON file, but for the tokenizer's
	maxLayers = 128
	maxWidth  = 1 << 14 // values of a token, and of the inner layers four times as many
	maxWords  = 1 << 21
	maxPlaces = 1 << 16
	maxLabels = 1 << 10
)

// maxTokens is the longest sequence that a net is given, whatever it could read: attention costs the square of it,
// and longer texts are read in windows.
const maxTokens = 512

// config is a model's config.json, as far as it decides what is computed. Pointers are fields whose absence is
// another thing than a zero.
type config struct {
	ModelType     string   `json:"model_type"`
	Architectures []string `json:"architectures"`

	Hidden     int      `json:"hidden_size"`
	Layers     int      `json:"num_hidden_layers"`
	Heads      int      `json:"num_attention_heads"`
	Inner      int      `json:"intermediate_size"`
	Vocabulary int      `json:"vocab_size"`
	Places     int      `json:"max_position_embeddings"`
	Types      *int     `json:"type_vocab_size"`
	Epsilon    *float64 `json:"layer_norm_eps"`
	Activation string   `json:"hidden_act"`
	Pad        *int     `json:"pad_token_id"`
	PlaceKind  string   `json:"position_embedding_type"`

	ID2Label map[string]string `json:"id2label"`
	Problem  string            `json:"problem_type"`

	LabelCount int `json:"num_labels"`

	modernBERT
	deBERTa
}

// modernBERT are the fields of that family.
type modernBERT struct {
	NormEpsilon       *float64                  `json:"norm_eps"`
	NormBias          bool                      `json:"norm_bias"`
	InnerActivation   string                    `json:"hidden_activation"`
	AttentionBias     bool                      `json:"attention_bias"`
	InnerBias         bool                      `json:"mlp_bias"`
	ClassifierBias    bool                      `json:"classifier_bias"`
	ClassifierPooling string                    `json:"classifier_pooling"`
	ClassifierAct     string                    `json:"classifier_activation"`
	GlobalEvery       *int                      `json:"global_attn_every_n_layers"`
	LayerTypes        []string                  `json:"layer_types"`
	Local             *int                      `json:"local_attention"`
	GlobalBase        float64                   `json:"global_rope_theta"`
	LocalBase         float64                   `json:"local_rope_theta"`
	Rotations         map[string]rotationConfig `json:"rope_parameters"`
	RotationScaling   *rotationConfig           `json:"rope_scaling"`
}

type rotationConfig struct {
	Base float64 `json:"rope_theta"`
	Kind string  `json:"rope_type"`
}

// deBERTa are the fields of DeBERTa-v2 and -v3.
type deBERTa struct {
	Relative      bool    `json:"relative_attention"`
	Buckets       int     `json:"position_buckets"`
	Reach         int     `json:"max_relative_positions"`
	PlacesAtInput *bool   `json:"position_biased_input"`
	ShareKeys     bool    `json:"share_att_key"`
	Terms         termSet `json:"pos_att_type"`
	NormPlaces    string  `json:"norm_rel_ebd"`
	Convolution   int     `json:"conv_kernel_size"`
	RowWidth      int     `json:"embedding_size"`
	PoolerAct     string  `json:"pooler_hidden_act"`
}

// termSet is a list, or one string with its parts between bars.
type termSet []string

func (t *termSet) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		for part := range strings.SplitSeq(one, "|") {
			if part = strings.TrimSpace(part); part != "" {
				*t = append(*t, part)
			}
		}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// openFile opens a file of at most most bytes. What is no file is not opened: a named pipe would wait for ever.
func openFile(path string, most int64) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s: it is no file of at most %d MiB", filepath.Base(path), most>>20)
	}
	return os.Open(path)
}

// readText reads a file of at most most bytes.
func readText(path string, most int64) ([]byte, error) {
	f, err := openFile(path, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

func readConfig(dir string) (*config, error) {
	data, err := readText(filepath.Join(dir, "config.json"), maxText)
	if err != nil {
		return nil, err
	}
	c := new(config)
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("cannot read config.json: %w", err)
	}
	return c, c.check()
}

// check bounds what is made by these numbers, and refuses what the layers cannot be of.
func (c *config) check() error {
	for _, n := range []struct {
		name        string
		value, most int
		times       int // it has to be a multiple of
	}{
		{"hidden_size", c.Hidden, maxWidth, 16},
		{"num_hidden_layers", c.Layers, maxLayers, 1},
		{"num_attention_heads", c.Heads, maxWidth, 1},
		{"intermediate_size", c.Inner, 4 * maxWidth, 16},
		{"vocab_size", c.Vocabulary, maxWords, 1},
		{"max_position_embeddings", c.Places, maxPlaces, 1},
	} {
		switch {
		case n.value < 1 || n.value > n.most:
			return fmt.Errorf("config.json: %s is %d, not from 1 to %d", n.name, n.value, n.most)
		case n.value%n.times != 0:
			return fmt.Errorf("config.json: %s is %d, no multiple of %d", n.name, n.value, n.times)
		}
	}
	switch {
	case c.Hidden%(4*c.Heads) != 0:
		return fmt.Errorf("config.json: %d heads of hidden_size %d: a head's values are no multiple of 4", c.Heads, c.Hidden)
	case c.Problem == "multi_label_classification" || c.Problem == "regression":
		return fmt.Errorf("config.json: problem_type %s is %w: only one label of several is", c.Problem, ErrUnsupported)
	case c.LabelCount < 0 || c.LabelCount > maxLabels:
		return fmt.Errorf("config.json: num_labels is %d", c.LabelCount)
	case c.Types != nil && (*c.Types < 0 || *c.Types > maxLabels):
		return fmt.Errorf("config.json: type_vocab_size is %d", *c.Types)
	}
	return nil
}

// pad is the id of the token that fills up.
func (c *config) pad(standard int) (int, error) {
	if c.Pad == nil {
		return standard, nil
	}
	if *c.Pad < 0 || *c.Pad >= c.Vocabulary {
		return 0, fmt.Errorf("config.json: pad_token_id is %d of %d tokens", *c.Pad, c.Vocabulary)
	}
	return *c.Pad, nil
}

// mappings are the files in which Semantic Router's models have their labels, where config.json has only LABEL_0
// and so on.
var mappings = []string{"category_mapping.json", "jailbreak_type_mapping.json", "pii_type_mapping.json", "label_mapping.json"}

// labels are the names of the outputs, in their order.
func (c *config) labels(dir string) ([]string, error) {
	names, err := inOrder(c.ID2Label)
	if c.ID2Label == nil { // what config.json leaves out is as transformers has it by itself
		for i := range cmp.Or(c.LabelCount, 2) {
			names = append(names, fmt.Sprintf("LABEL_%d", i))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("config.json: id2label: %w", err)
	}
	if slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, "LABEL_") }) {
		return names, nil
	}
	for _, file := range mappings {
		data, err := readText(filepath.Join(dir, file), maxText)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		names, err := mapped(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return names, nil
	}
	return names, nil
}

// mapped reads a file of labels: a map of numbers to names under one of some keys.
func mapped(data []byte) ([]string, error) {
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	for _, key := range []string{"idx_to_category", "idx_to_label", "id_to_label", "idx2label", "id2label"} {
		if raw, ok := file[key]; ok {
			var names map[string]string
			if err := json.Unmarshal(raw, &names); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			return inOrder(names)
		}
	}
	return nil, errors.New("it has none of idx_to_category, idx_to_label, id_to_label, id2label")
}

// inOrder puts names by their numbers, which have to be 0, 1 and so on.
func inOrder(by map[string]string) ([]string, error) {
	if len(by) > maxLabels {
		return nil, fmt.Errorf("%d labels, at most %d", len(by), maxLabels)
	}
	names := make([]string, len(by))
	for number, name := range by {
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= len(names) || names[i] != "" {
			return nil, fmt.Errorf("label %q has the number %q of %d", name, number, len(names))
		}
		if names[i] = name; name == "" {
			return nil, fmt.Errorf("label %d has no name", i)
		}
	}
	return names, nil
}

// factor is what scores are multiplied with: one over the root of a head's size, times the number of terms that
// are added up.
func factor(headSize, terms int) float32 {
	return float32(1 / math.Sqrt(float64(headSize*terms)))
}
