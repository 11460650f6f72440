// The families of encoders: how their tensors are called, and what is special about their layers. Names and
// arithmetic are those of the models in github.com/huggingface/transformers.

package encoder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A family opens the nets of one model_type.
type family struct {
	prefix string // of the net's tensors where there is a head beside it
	net    func(o *opener)
	head   func(o *opener, s *Shape, h *head)
}

// families are the values of model_type that can be read.
func families() map[string]family {
	bert := family{"bert.", openBERT, headBERT}
	roberta := family{"roberta.", openRoBERTa, headRoBERTa}
	return map[string]family{
		"bert":        bert,
		"roberta":     roberta,
		"xlm-roberta": roberta,
		"camembert":   roberta,
		"modernbert":  {"model.", openModernBERT, headModernBERT},
		"deberta-v2":  {"deberta.", openDeBERTa, headDeBERTa},
	}
}

func familyNames() string {
	var names []string
	for name := range families() {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// selfNames are what the tensors of attention are called that differ.
type selfNames struct{ query, key, value string }

var (
	namesBERT    = selfNames{"query", "key", "value"}
	namesDeBERTa = selfNames{"query_proj", "key_proj", "value_proj"}
)

func openBERT(o *opener) {
	o.typeTable(2)
	o.n.places = o.table("embeddings.position_embeddings", o.c.Places, o.n.hidden)
	o.n.most = min(o.n.most, o.c.Places)
	o.n.epsilon = o.epsilon(o.c.Epsilon, 1e-12)
	openLikeBERT(o, namesBERT, 1, nil)
}

// openRoBERTa opens a net whose places are counted from behind the padding token's id.
func openRoBERTa(o *opener) {
	var err error
	o.n.pad, err = o.c.pad(1)
	o.fail(err)
	o.n.padSkips, o.n.firstPlace = true, o.n.pad+1
	o.typeTable(1)
	o.n.places = o.table("embeddings.position_embeddings", o.c.Places, o.n.hidden)
	o.n.most = min(o.n.most, o.c.Places-o.n.firstPlace)
	o.n.epsilon = o.epsilon(o.c.Epsilon, 1e-12)
	openLikeBERT(o, namesBERT, 1, nil)
}

// openLikeBERT opens what BERT, RoBERTa and DeBERTa have in common; the epsilon of the norms is set. terms is how many terms a score has, and more adds
// to a layer of whose attention the tensors' names begin with self.
func openLikeBERT(o *opener, self selfNames, terms int, more func(l *layer, self string)) {
	o.n.factor = factor(o.n.headSize, terms)
	o.n.words = o.table("embeddings.word_embeddings", o.c.Vocabulary, o.n.width)
	o.n.begin = o.norm("embeddings.LayerNorm", true)
	o.gelu("hidden_act", cmp.Or(o.c.Activation, "gelu"))
	o.refuse(o.c.PlaceKind != "" && o.c.PlaceKind != "absolute", "position_embedding_type "+o.c.PlaceKind)
	for i := range o.c.Layers {
		at := fmt.Sprintf("encoder.layer.%d.", i)
		of := at + "attention.self."
		l := layer{
			qkv:       o.dense(o.n.hidden, o.n.hidden, true, of+self.query, of+self.key, of+self.value),
			out:       o.dense(o.n.hidden, o.n.hidden, true, at+"attention.output.dense"),
			after:     o.norm(at+"attention.output.LayerNorm", true),
			up:        o.dense(o.n.hidden, o.n.inner, true, at+"intermediate.dense"),
			down:      o.dense(o.n.inner, o.n.hidden, true, at+"output.dense"),
			afterDown: o.norm(at+"output.LayerNorm", true),
		}
		if more != nil {
			more(&l, of)
		}
		o.add(l)
	}
}

// openDeBERTa opens a net whose scores have terms for the distance of the two tokens.
func openDeBERTa(o *opener) {
	c, n := o.c, o.n
	o.refuse(c.Convolution > 0, "conv_kernel_size above 0")
	o.refuse(!c.Relative, "relative_attention that is off")
	for _, term := range c.Terms {
		o.refuse(term != "c2p" && term != "p2c", "pos_att_type "+term)
	}
	if n.width = cmp.Or(c.RowWidth, n.hidden); n.width < 1 || n.width > maxWidth || n.width%16 != 0 {
		o.fail(fmt.Errorf("config.json: embedding_size is %d, no multiple of 16 up to %d", n.width, maxWidth))
		return
	}
	if n.width != n.hidden {
		n.project = o.dense(n.width, n.hidden, false, "embeddings.embed_proj")
	}
	o.typeTable(0)
	if c.PlacesAtInput == nil || *c.PlacesAtInput {
		n.places = o.table("embeddings.position_embeddings", c.Places, n.width)
		n.most = min(n.most, c.Places)
	}
	n.epsilon = o.epsilon(c.Epsilon, 1e-7)
	reach := c.Reach
	if reach < 1 {
		reach = c.Places
	}
	if reach > maxPlaces || c.Buckets > maxPlaces || c.Buckets > 0 && (c.Buckets < 4 || reach < c.Buckets) {
		o.fail(fmt.Errorf("config.json: max_relative_positions %d and position_buckets %d", reach, c.Buckets))
		return
	}
	n.relative = newRelative(n.most, c.Buckets, reach)
	places := o.relativePlaces()
	openLikeBERT(o, namesDeBERTa, 1+len(c.Terms), func(l *layer, self string) { o.addPlaces(l, self, places) })
}

// openModernBERT opens a net of rotated queries and keys, where most layers see only what is near.
func openModernBERT(o *opener) {
	c, n := o.c, o.n
	n.most = min(n.most, c.Places)
	n.epsilon = o.epsilon(c.NormEpsilon, 1e-5)
	n.factor = factor(n.headSize, 1)
	o.gelu("hidden_activation", cmp.Or(c.InnerActivation, "gelu"))
	n.words = o.table("embeddings.tok_embeddings", c.Vocabulary, n.width)
	n.begin = o.norm("embeddings.norm", c.NormBias)
	far := newRotation(o.base("full_attention", c.GlobalBase, 160_000), n.most, n.headSize)
	near := newRotation(o.base("sliding_attention", c.LocalBase, 10_000), n.most, n.headSize)
	window := o.number("local_attention", c.Local, 128) / 2
	for i := range c.Layers {
		at := fmt.Sprintf("layers.%d.", i)
		l := layer{
			qkv:      o.dense(n.hidden, 3*n.hidden, c.AttentionBias, at+"attn.Wqkv"),
			out:      o.dense(n.hidden, n.hidden, c.AttentionBias, at+"attn.Wo"),
			beforeUp: o.norm(at+"mlp_norm", c.NormBias),
			up:       o.dense(n.hidden, 2*n.inner, c.InnerBias, at+"mlp.Wi"),
			down:     o.dense(n.inner, n.hidden, c.InnerBias, at+"mlp.Wo"),
			gated:    true,
			turns:    far,
		}
		if i > 0 {
			l.before = o.norm(at+"attn_norm", c.NormBias)
		}
		if o.seesNear(i) {
			l.window, l.turns = window, near
		}
		o.add(l)
	}
	n.end = o.norm("final_norm", c.NormBias)
}

// seesNear says that a layer of ModernBERT sees only what is near.
func (o *opener) seesNear(layer int) bool {
	if kinds := o.c.LayerTypes; kinds != nil {
		if len(kinds) != o.c.Layers {
			o.fail(fmt.Errorf("config.json: %d layer_types for %d layers", len(kinds), o.c.Layers))
			return false
		}
		o.refuse(kinds[layer] != "full_attention" && kinds[layer] != "sliding_attention", "layer_types "+kinds[layer])
		return kinds[layer] == "sliding_attention"
	}
	return layer%o.number("global_attn_every_n_layers", o.c.GlobalEvery, 3) != 0
}

// base is the base of the angles of one kind of layer.
func (o *opener) base(kind string, old, standard float64) float64 {
	of := o.c.Rotations[kind]
	for _, k := range []string{of.Kind, o.scaling()} {
		o.refuse(k != "" && k != "default", "rope_type "+k)
	}
	base := cmp.Or(of.Base, old, standard)
	if !(base > 1 && base < 1e9) {
		o.fail(fmt.Errorf("config.json: the base of its rotations is %g", base))
	}
	return base
}

func (o *opener) scaling() string {
	if o.c.RotationScaling == nil {
		return ""
	}
	return cmp.Or(o.c.RotationScaling.Kind, "scaled")
}

func headBERT(o *opener, s *Shape, h *head) {
	if s.Task == Sequence {
		h.dense, h.act = o.dense(o.n.hidden, o.n.hidden, true, "pooler.dense"), o.n.arithmetic.tanh
	}
	o.outside()
	h.classifier = o.dense(o.n.hidden, len(s.Labels), true, "classifier")
}

func headRoBERTa(o *opener, s *Shape, h *head) {
	o.outside()
	if s.Task == Token {
		h.classifier = o.dense(o.n.hidden, len(s.Labels), true, "classifier")
		return
	}
	h.dense, h.act = o.dense(o.n.hidden, o.n.hidden, true, "classifier.dense"), o.n.arithmetic.tanh
	h.classifier = o.dense(o.n.hidden, len(s.Labels), true, "classifier.out_proj")
}

func headDeBERTa(o *opener, s *Shape, h *head) {
	o.outside()
	if s.Task == Sequence {
		o.gelu("pooler_hidden_act", cmp.Or(o.c.PoolerAct, "gelu"))
		h.dense, h.act = o.dense(o.n.hidden, o.n.hidden, true, "pooler.dense"), o.n.arithmetic.gelu
	}
	h.classifier = o.dense(o.n.hidden, len(s.Labels), true, "classifier")
}

func headModernBERT(o *opener, s *Shape, h *head) {
	o.outside()
	o.gelu("classifier_activation", cmp.Or(o.c.ClassifierAct, "gelu"))
	switch pooling := cmp.Or(o.c.ClassifierPooling, "cls"); pooling {
	case "cls":
	case "mean":
		h.mean = true
	default:
		o.refuse(true, "classifier_pooling "+pooling)
	}
	h.dense, h.act = o.dense(o.n.hidden, o.n.hidden, o.c.ClassifierBias, "head.dense"), o.n.arithmetic.gelu
	h.norm = o.norm("head.norm", o.c.NormBias)
	h.classifier = o.dense(o.n.hidden, len(s.Labels), true, "classifier")
}

// typeTable reads the rows of the types, if there are any.
func (o *opener) typeTable(standard int) {
	if o.n.typeCount = o.number("type_vocab_size", o.c.Types, standard); o.n.typeCount > 0 {
		o.n.types = o.table("embeddings.token_type_embeddings", o.n.typeCount, o.n.width)
	}
}

// refuse refuses a model that asks for what is not there.
func (o *opener) refuse(asked bool, what string) {
	if asked {
		o.fail(fmt.Errorf("config.json: %s is %w", what, ErrUnsupported))
	}
}

// gelu refuses any other activation.
func (o *opener) gelu(key, name string) {
	o.refuse(name != "gelu", key+" "+name)
}
