// The files of one model: its tokenizer, its chat templates, and what its configuration says of both.

package prompt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"kvasir/kvroute/template"
	"kvasir/tokenize"
)

// files is a directory, read. Immutable.
type files struct {
	dir       string
	stamp     stamp
	seed      uint64 // another one for each
	tokenizer *tokenize.Tokenizer
	plain     *template.Template // nil: none
	tools     *template.Template // for requests with tools
	trouble   error              // why there is no template
	parts     bool               // content goes to the template in parts
	specials  *template.Dict     // bos_token and the others, as variables of the template
	unsaid    []string           // those of them that the files leave to transformers' classes
	begins    error              // why completions cannot be tokenised, nil if they can
}

// named are the files that count.
var named = []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja", "chat_template.json",
	"config.json", "tekken.json", moreTemplates}

// moreTemplates is the template for requests with tools, where it has a file of its own.
const moreTemplates = "additional_chat_templates/tool_use.jinja"

// stamp tells whether files have changed.
type stamp [8]struct {
	size int64
	time time.Time
}

func stampOf(dir string) (s stamp) {
	for i, name := range named {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			s[i].size, s[i].time = info.Size(), info.ModTime()
		}
	}
	return s
}

const maxConfig = 16 << 20 // bytes of a configuration

// readObject reads a file of JSON; nil where there is none.
func readObject(path string) (*template.Dict, error) {
	data, err := readBounded(path)
	if data == nil || err != nil {
		return nil, err
	}
	v, err := template.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", path, err)
	}
	d, ok := v.(*template.Dict)
	if !ok {
		return nil, fmt.Errorf("cannot read %q: no object", path)
	}
	return d, nil
}

// readBounded is os.ReadFile of a small regular file; nil where there is none.
func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read %q: %w", path, err)
	case !info.Mode().IsRegular() || info.Size() > maxConfig:
		return nil, fmt.Errorf("cannot read %q: not a file of at most %d bytes", path, maxConfig)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", path, err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}

var seeds atomic.Uint64

// readFiles reads a model's directory.
func readFiles(dir string, s stamp) (*files, error) {
	f := &files{dir: dir, stamp: s, seed: seeds.Add(1), specials: template.NewDict(8)}
	config, err := readObject(filepath.Join(dir, "tokenizer_config.json"))
	if err != nil {
		return nil, err
	}
	if config == nil {
		config = template.NewDict(0)
	}
	model, err := readObject(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, err
	}
	if model == nil {
		model = template.NewDict(0)
	}
	if v, _ := config.Get("split_special_tokens"); v == true {
		return nil, fmt.Errorf("cannot use the tokenizer of %q: split_special_tokens: %w", dir, ErrUnsupported)
	}
	if f.tokenizer, err = tokenize.Open(filepath.Join(dir, "tokenizer.json")); err != nil {
		return nil, err
	}
	if err := f.readSpecials(config); err != nil {
		return nil, err
	}
	f.checkBegins(config)
	if f.trouble = ownWay(dir, model); f.trouble == nil {
		f.trouble = f.readTemplates(config)
	}
	if f.trouble == nil {
		f.trouble = f.checkLimit()
	}
	return f, nil
}

// ownWay says where engines write a chat by code of their own.
func ownWay(dir string, model *template.Dict) error {
	kind, _ := model.Get("model_type")
	name, _ := kind.(string)
	for _, own := range []string{"gpt_oss", "deepseek_v32", "deepseek_v4", "kimi_k3", "inkling"} {
		if name == own {
			return fmt.Errorf("engines write chats of %s without a template: %w", name, ErrUnsupported)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "tekken.json")); err == nil {
		return fmt.Errorf("engines write chats by tekken.json, not by a template: %w", ErrUnsupported)
	}
	return nil
}

// readTemplates finds the templates: chat_template.jinja before tokenizer_config.json's, and those of
// other names beside it, of which only tool_use is asked for.
func (f *files) readTemplates(config *template.Dict) error {
	sources, err := f.sources(config)
	if err != nil {
		return err
	}
	plain, ok := sources["default"]
	if !ok {
		return fmt.Errorf("%q has none: %w", f.dir, ErrNoTemplate)
	}
	if f.plain, err = template.Compile(plain); err != nil {
		return fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	f.tools = f.plain
	if s, ok := sources["tool_use"]; ok {
		if f.tools, err = template.Compile(s); err != nil {
			return fmt.Errorf("%w: %w", ErrTemplate, err)
		}
	}
	if f.parts, ok = f.plain.Parts(); !ok {
		return fmt.Errorf("%w: how it takes content cannot be told", ErrTemplate)
	}
	if parts, ok := f.tools.Parts(); !ok || parts != f.parts {
		return fmt.Errorf("%w: how it takes content cannot be told", ErrTemplate)
	}
	return nil
}

// checkLimit says where short conversations take more than a rendering may have: each request would
// cost as much, for nothing. Of other failures nothing follows: templates may do without tools.
func (f *files) checkLimit() error {
	w := takeWorkspace()
	defer w.giveBack()
	for _, probe := range probes {
		d, err := w.parseObject([]byte(probe))
		if err != nil {
			return err
		}
		c, err := readChat(d, "", f.parts)
		if err != nil {
			return err
		}
		if _, err = f.render(nil, c); errors.Is(err, template.ErrLimit) {
			return fmt.Errorf("a short conversation: %w", err)
		}
	}
	return nil
}

func (f *files) sources(config *template.Dict) (map[string]string, error) {
	sources := map[string]string{}
	v, _ := config.Get("chat_template")
	switch v := v.(type) {
	case string:
		sources["default"] = v
	case *template.List:
		for _, item := range v.Items {
			if d, ok := item.(*template.Dict); ok {
				name, _ := d.Get("name")
				source, _ := d.Get("template")
				key, _ := name.(string)
				if s, ok := source.(string); ok {
					sources[key] = s
				}
			}
		}
	}
	data, err := readBounded(filepath.Join(f.dir, "chat_template.jinja"))
	if err != nil {
		return nil, err
	}
	if data != nil {
		sources = map[string]string{"default": string(data)}
	}
	more, err := readBounded(filepath.Join(f.dir, moreTemplates))
	if err != nil {
		return nil, err
	}
	if more != nil {
		sources["tool_use"] = string(more)
	}
	// A processor of pictures may have a template of its own, which engines take for requests without tools.
	other, err := readObject(filepath.Join(f.dir, "chat_template.json"))
	if err != nil {
		return nil, err
	}
	if v, _ := other.Get("chat_template"); v != nil && v != sources["default"] {
		return nil, fmt.Errorf("%q has two that differ: %w", f.dir, ErrTemplate)
	}
	return sources, nil
}

// template is the one for a request.
func (f *files) template(tools bool) (*template.Template, error) {
	switch {
	case f.trouble != nil:
		return nil, f.trouble
	case tools:
		return f.tools, nil
	}
	return f.plain, nil
}

// tokenNames are what transformers passes to templates of special tokens.
var tokenNames = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// readSpecials reads the special tokens. What the files do not say, not even null, comes from the class
// of the tokenizer, and only the plain classes have none.
func (f *files) readSpecials(config *template.Dict) error {
	older, err := readObject(filepath.Join(f.dir, "special_tokens_map.json"))
	if err != nil {
		return err
	}
	class, _ := config.Get("tokenizer_class")
	name, _ := class.(string)
	plain := slices.Contains([]string{"PreTrainedTokenizerFast", "PreTrainedTokenizer", "TokenizersBackend"}, name)
	for _, name := range tokenNames {
		v, said := config.Get(name)
		if !said {
			v, said = older.Get(name)
		}
		if s, ok := contentOf(v); ok {
			f.specials.Set(name, s)
		} else if !said && !plain {
			f.unsaid = append(f.unsaid, name)
		}
	}
	extra, _ := config.Get("extra_special_tokens")
	if d, ok := extra.(*template.Dict); ok {
		for i := range d.Len() {
			k, v := d.At(i)
			if s, ok := contentOf(v); ok && !has(f.specials, k.(string)) {
				f.specials.Set(k.(string), s)
			}
		}
	}
	return nil
}

// contentOf is a token written as text or as an object.
func contentOf(v any) (string, bool) {
	if d, ok := v.(*template.Dict); ok {
		v, _ = d.Get("content")
	}
	s, ok := v.(string)
	return s, ok
}

// checkBegins compares what tokenizer_config.json says of tokens around a text with what
// tokenizer.json does. transformers goes by the first, and then they must agree.
func (f *files) checkBegins(config *template.Dict) {
	bare, around := f.tokenizer.Append(nil, []byte("a"), false), f.tokenizer.Append(nil, []byte("a"), true)
	at := indexOf(around, bare)
	for name, does := range map[string]bool{"add_bos_token": at > 0, "add_eos_token": at >= 0 && at+len(bare) < len(around)} {
		if v, ok := config.Get(name); ok && v != nil && v != does {
			f.begins = fmt.Errorf("%s is %v in tokenizer_config.json of %q, and tokenizer.json does otherwise: %w", name, v, f.dir, ErrUnsupported)
		}
	}
}

func indexOf(all, part []uint32) int {
	for i := 0; i+len(part) <= len(all); i++ {
		if slices.Equal(all[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}

// hubDir is the directory of a model in Hugging Face's cache, "" if it is not there.
func hubDir(cache, id string) string {
	if cache == "" || !isID(id) {
		return ""
	}
	base := filepath.Join(cache, "models--"+strings.ReplaceAll(id, "/", "--"))
	var revision string
	if data, err := readBounded(filepath.Join(base, "refs", "main")); err == nil {
		revision = strings.TrimSpace(string(data))
	}
	if revision == "" {
		entries, err := os.ReadDir(filepath.Join(base, "snapshots"))
		if err != nil || len(entries) != 1 {
			return ""
		}
		revision = entries[0].Name()
	}
	if strings.ContainsAny(revision, "/\\") || revision == ".." {
		return ""
	}
	return filepath.Join(base, "snapshots", revision)
}

// isID tells whether a name is one of Hugging Face's: name or organisation/name.
func isID(id string) bool {
	parts := strings.Split(id, "/")
	if len(parts) > 2 || len(id) > 200 {
		return false
	}
	for _, p := range parts {
		if p == "" || p[0] == '.' || strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
			return false
		}
	}
	return true
}

// hubCache is where Hugging Face's tools keep what they fetched.
func hubCache() string {
	if dir := os.Getenv("HF_HUB_CACHE"); dir != "" {
		return dir
	}
	if dir := os.Getenv("HF_HOME"); dir != "" {
		return filepath.Join(dir, "hub")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".cache", "huggingface", "hub")
}

// holds tells whether a directory has a tokenizer.
func holds(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "tokenizer.json"))
	return err == nil && info.Mode().IsRegular()
}
