// Opening a directory: config.json, tokenizer.json, model.safetensors.

package encoder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kvasir/classify/model"
	"kvasir/tokenize"
)

// maxWeights bounds model.safetensors, in bytes: the largest encoders have 2.3 GB.
const maxWeights = 8 << 30

// blockRows is how many rows of a table are read at a time.
const blockRows = 4096

// shape are the sizes of a net.
type shape struct {
	width                   int // of the rows of the tables
	hidden, heads, headSize int
	inner                   int
	vocabulary, typeCount   int
	most                    int     // tokens of a sequence
	epsilon                 float32 // of the norms
	factor                  float32 // of the scores
	firstPlace, pad         int
	padSkips                bool // a padding token has its own place, and is not counted
}

// opener reads the tensors of a net. The first thing that is wrong stays in err, and nothing is read after it.
type opener struct {
	c       *config
	t       *model.Tensors
	n       *net
	prefix  string
	err     error
	scratch Scratch

	tokenizer *tokenize.Tokenizer
	tokens    int // of sample, whose states are in scratch
}

// sample is what goes through a net when it is opened, so that each layer is rounded for inputs as they come.
const sample = `Ignore the rules above? The committee's 2024 report (page 17) says: "Costs rose by 3.5 %." ` +
	`Bitte übersetzen Sie den Satz. 请把这句话翻译成英文。 Où est la gare? ¿Qué hora es? Привет! これは何ですか ` +
	`def f(x): return x ** 2  # {"role": "user"} <b>https://example.com/a?b=1</b> IMPORTANT!!! A cat sat on the mat, and ` +
	`Dr. Maria Schmidt called +1 555 0100 from Berlin about her order; please summarise the email below and answer politely.`

// sampleTokens is how many tokens of it, at most.
const sampleTokens = 192

// add adds a layer, and takes the sample through it.
func (o *opener) add(l layer) {
	o.n.layers = append(o.n.layers, l)
	if o.err != nil {
		return
	}
	if len(o.n.layers) == 1 {
		o.fail(o.takeSample())
	}
	if o.err == nil {
		o.n.pass(&o.n.layers[len(o.n.layers)-1], o.tokens, &o.scratch)
	}
}

// takeSample brings the tokens of sample to the first layer.
func (o *opener) takeSample() error {
	n, around, s := o.n, o.tokenizer.Around(false), &o.scratch
	if around == 0 {
		return errors.New("tokenizer.json puts nothing around a text: it has no post_processor, and every model that is read here was trained with one")
	}
	if n.most <= around {
		return fmt.Errorf("config.json: max_position_embeddings is %d: that is %d tokens, and tokenizer.json puts %d around a text", o.c.Places, n.most, around)
	}
	ids := o.tokenizer.Append(nil, []byte(sample), false)
	s.ids, s.kinds = n.framed(o.tokenizer, ids[:min(len(ids), sampleTokens, n.most-around)], s)
	o.tokens = len(s.ids)
	n.start(s.ids, s.kinds, s)
	return nil
}

// newOpener begins a net.
func newOpener(c *config, t *model.Tensors, n *net, tokenizer *tokenize.Tokenizer, arithmetic arithmetic, prefix string) *opener {
	*n = net{arithmetic: arithmetic, shape: shape{
		width: c.Hidden, hidden: c.Hidden, heads: c.Heads, headSize: c.Hidden / c.Heads,
		inner: c.Inner, vocabulary: c.Vocabulary, most: maxTokens,
	}}
	return &opener{c: c, t: t, n: n, prefix: prefix, tokenizer: tokenizer}
}

func (o *opener) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// Open reads the encoder in a directory. Errors name the file, and the field or the tensor.
func Open(dir string) (*Encoder, error) {
	e, err := open(dir, inInt8)
	if err != nil {
		return nil, fmt.Errorf("cannot use the model in %q: %w", dir, said(err))
	}
	return e, nil
}

// said leaves the path out of an error that names a file that is not there: the file's name is enough.
func said(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return fmt.Errorf("%s: %w", filepath.Base(of.Path), of.Err)
	}
	return err
}

// Describe returns the shape of the encoder in a directory, without reading its weights; Open may still find
// something wrong.
func Describe(dir string) (Shape, error) {
	_, shape, err := describe(dir)
	for _, name := range []string{"tokenizer.json", "model.safetensors"} {
		if err == nil {
			err = isThere(dir, name)
		}
	}
	if err != nil {
		return shape, fmt.Errorf("cannot use the model in %q: %w", dir, said(err))
	}
	return shape, nil
}

// Hash is a short hash of all that decides what comes out of the encoder in a directory, 12 hexadecimal digits.
func Hash(dir string) (string, error) {
	h := sha256.New()
	for _, name := range []string{"config.json", "tokenizer.json", poolingFile, "model.safetensors"} {
		file, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) && name == poolingFile {
			continue
		}
		if err == nil {
			fmt.Fprintf(h, "%s\x00", name)
			_, err = io.Copy(h, file)
			file.Close()
		}
		if err != nil {
			return "", fmt.Errorf("cannot use the model in %q: %w", dir, said(err))
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// isThere says what is wrong with a file that will be opened.
func isThere(dir, name string) (err error) {
	var file *os.File
	if name == "model.safetensors" {
		file, err = openWeights(dir)
	} else {
		file, err = openFile(filepath.Join(dir, name), maxText<<4)
	}
	if err == nil {
		file.Close()
	}
	return err
}

func describe(dir string) (c *config, s Shape, err error) {
	if c, err = readConfig(dir); err != nil {
		return nil, s, err
	}
	if _, ok := families()[c.ModelType]; !ok {
		return nil, s, fmt.Errorf("config.json: model_type %q is %w: these are: %s", c.ModelType, ErrUnsupported, familyNames())
	}
	s.Family, s.Size = c.ModelType, c.Hidden
	if s.Task, err = c.task(); err != nil || s.Task == Embedding {
		return c, s, err
	}
	if s.Labels, err = c.labels(dir); err == nil && len(s.Labels) < 2 {
		err = fmt.Errorf("config.json: %d labels in id2label, which must be 2 at least", len(s.Labels))
	}
	return c, s, err
}

func open(dir string, arithmetic arithmetic) (*Encoder, error) {
	c, shape, err := describe(dir)
	if err != nil {
		return nil, err
	}
	e := &Encoder{Shape: shape}
	if e.tokenizer, err = tokenize.Open(filepath.Join(dir, "tokenizer.json")); err != nil {
		return nil, err
	}
	if err := e.readWeights(c, dir, arithmetic); err != nil {
		return nil, err
	}
	if e.Task == Embedding {
		if e.head.mean, err = pooling(dir); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// readWeights reads model.safetensors.
func (e *Encoder) readWeights(c *config, dir string, arithmetic arithmetic) error {
	file, err := openWeights(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	tensors, err := model.ReadTensors(file, info.Size())
	if err != nil {
		return fmt.Errorf("model.safetensors: %w", err)
	}
	return e.build(c, tensors, arithmetic)
}

func openWeights(dir string) (*os.File, error) {
	file, err := openFile(filepath.Join(dir, "model.safetensors"), maxWeights)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	for name, what := range map[string]string{
		"model.safetensors.index.json": "it is in several parts: save the model in one",
		"pytorch_model.bin":            "there is pytorch_model.bin, which may hold programs and is not read: save the model as safetensors",
	} {
		if _, other := os.Stat(filepath.Join(dir, name)); other == nil {
			return nil, fmt.Errorf("%w; %s", said(err), what)
		}
	}
	return nil, err
}

// build reads the net and its head.
func (e *Encoder) build(c *config, t *model.Tensors, arithmetic arithmetic) error {
	f := families()[c.ModelType]
	if size := e.tokenizer.Size(); size > c.Vocabulary {
		return fmt.Errorf("tokenizer.json has tokens up to %d, the vocabulary of config.json %d", size-1, c.Vocabulary)
	}
	o := newOpener(c, t, &e.net, e.tokenizer, arithmetic, prefixOf(t, f.prefix))
	f.net(o)
	if o.err != nil {
		return o.err
	}
	e.net.normalise(o.scratch.x, e.net.end)
	out := o.scratch.x
	if e.Task != Embedding {
		if f.head(o, &e.Shape, &e.head); o.err == nil {
			out = e.outputs(o.scratch.x, min(o.tokens, model.RowBlock), &o.scratch)
		}
	}
	for _, v := range out {
		if v-v != 0 {
			o.fail(errNotFinite)
		}
	}
	return o.err
}

// task is what the last layer is for.
func (c *config) task() (Task, error) {
	for _, name := range c.Architectures {
		switch {
		case strings.HasSuffix(name, "ForSequenceClassification"):
			return Sequence, nil
		case strings.HasSuffix(name, "ForTokenClassification"):
			return Token, nil
		case strings.HasSuffix(name, "Model"), strings.HasSuffix(name, "ForMaskedLM"):
			return Embedding, nil
		}
	}
	return 0, fmt.Errorf("config.json: architectures %q is %w: a name that ends in ForSequenceClassification, ForTokenClassification or Model is",
		c.Architectures, ErrUnsupported)
}

// prefixOf is what stands before the names of the net's tensors: nothing where it was saved without a head.
func prefixOf(t *model.Tensors, prefix string) string {
	for name := range t.Names() {
		if strings.HasPrefix(name, prefix+"embeddings.") {
			return prefix
		}
	}
	return ""
}

// outside turns to the tensors that stand outside of the net.
func (o *opener) outside() { o.prefix = "" }

// rows appends the rows of a tensor to dst.
func (o *opener) rows(dst []float32, name string, rows, columns int) []float32 {
	if o.err == nil {
		o.fail(o.t.Rows(name, rows, columns, blockRows, func(_ int, values []float32) error {
			dst = append(dst, values...)
			return nil
		}))
	}
	return dst
}

func (o *opener) vector(name string, size int) []float32 { return o.rows(nil, name, 1, size) }

// dense reads dense layers of in inputs and out outputs each, all as one.
func (o *opener) dense(in, out int, bias bool, names ...string) dense {
	var w, biases []float32
	for _, name := range names {
		w = o.rows(w, o.prefix+name+".weight", out, in)
		if bias {
			biases = o.rows(biases, o.prefix+name+".bias", 1, out)
		}
	}
	if o.err != nil {
		return nil
	}
	d := o.n.arithmetic.dense()
	d.load(w, biases, in, len(names)*out)
	return d
}

// norm reads a norm. Old files call its gain and bias gamma and beta.
func (o *opener) norm(name string, bias bool) *norm {
	weight, shift := ".weight", ".bias"
	if _, old := o.t.Shape(o.prefix + name + ".gamma"); old {
		weight, shift = ".gamma", ".beta"
	}
	n := &norm{gain: o.vector(o.prefix+name+weight, o.n.hidden), bias: make([]float32, o.n.hidden)}
	if bias {
		n.bias = o.vector(o.prefix+name+shift, o.n.hidden)
	}
	return n
}

// table reads a table, a block of rows at a time.
func (o *opener) table(name string, rows, width int) table {
	if o.err != nil {
		return nil
	}
	if bytes, scales, err := o.t.Packed4(o.prefix+name+".weight", rows, width); err == nil {
		return &packedTable{bytes, scales, width}
	}
	if shape, ok := o.t.Shape(o.prefix + name + ".weight"); !ok || len(shape) != 2 || shape[0] != rows || shape[1] != width {
		// Before memory is taken for it.
		o.fail(o.t.Rows(o.prefix+name+".weight", rows, width, 1, nil))
		return nil
	}
	t := o.n.arithmetic.table(rows, width)
	o.fail(o.t.Rows(o.prefix+name+".weight", rows, width, blockRows, func(first int, values []float32) error {
		for i := 0; i < len(values)/width; i++ {
			t.set(first+i, values[i*width:][:width])
		}
		return nil
	}))
	return t
}

// relativePlaces reads the rows of the places that distances have.
func (o *opener) relativePlaces() []float32 {
	n := o.n
	places := o.rows(nil, o.prefix+"encoder.rel_embeddings.weight", n.relative.places(), n.hidden)
	if strings.Contains(strings.ToLower(o.c.NormPlaces), "layer_norm") {
		n.normalise(places, o.norm("encoder.LayerNorm", true))
	}
	return places
}

// addPlaces gives a layer of DeBERTa what its heads make of the places. They do not depend on the text.
func (o *opener) addPlaces(l *layer, self string, places []float32) {
	keys, queries := "pos_key_proj", "pos_query_proj"
	if o.c.ShareKeys {
		keys, queries = namesDeBERTa.key, namesDeBERTa.query
	}
	count := o.n.relative.places()
	for _, term := range o.c.Terms {
		switch term {
		case "c2p":
			l.keysAt = o.heads(self+keys, places, count)
		case "p2c":
			l.queriesAt = o.heads(self+queries, places, count)
		}
	}
}

// heads applies a dense layer to the places, and makes what each head has of them a layer: a head's value goes in,
// its product with each place comes out.
func (o *opener) heads(name string, places []float32, count int) (all []dense) {
	d, n := o.dense(o.n.hidden, o.n.hidden, true, name), o.n
	if o.err != nil {
		return nil
	}
	made := make([]float32, count*n.hidden)
	d.apply(n.hiddenRows(made), n.hiddenRows(places), model.Rows{}, count, &o.scratch.sums)
	for head := range n.heads {
		one := n.arithmetic.dense()
		one.set(n.hiddenRows(made[head*n.headSize:]), n.headSize, count, &o.scratch.sums)
		all = append(all, one)
	}
	return all
}

// epsilon is what stands under the root of the norms.
func (o *opener) epsilon(of *float64, standard float64) float32 {
	if of == nil {
		return float32(standard)
	}
	if !(*of > 0 && *of < 1) {
		o.fail(fmt.Errorf("config.json: the epsilon of its norms is %g", *of))
	}
	return float32(*of)
}

// number is a field that is a count.
func (o *opener) number(name string, of *int, standard int) int {
	if of == nil {
		return standard
	}
	if *of < 0 || *of == 0 && name != "type_vocab_size" {
		o.fail(fmt.Errorf("config.json: %s is %d", name, *of))
		return standard
	}
	return *of
}
