// Keyword: words in the last user message: exact, by regular expression, with
// slips of the pen, or weighed against the length of the text.

package classify

import (
	"fmt"
	"regexp"
)

// KindKeyword holds under names of the user's own.
const KindKeyword Kind = "keyword"

// maxKeywords and maxKeyword bound what one signal looks for, in words and in
// bytes of each.
const (
	maxKeywords = 4096
	maxKeyword  = 1024
)

// BM25 (Robertson and Walker 1994) with no collection to count in: each keyword
// weighs the same, and a text of typical words is what a longer one is held
// against. One keyword once in a text of that length scores 1.
const (
	bm25K1      = 1.2
	bm25B       = 0.75
	bm25Typical = 64.0

	defaultBM25  = 0.5
	defaultFuzzy = 0.8
)

// A finder counts the keywords that stand in a text.
type finder interface {
	find(text []byte, h *hits)
}

// newKeyword: operator any asks for one of the keywords, all for each, none for
// none.
func newKeyword(c *Classifier, o *SignalOptions) (test, error) {
	if err := checkKeywords(o); err != nil {
		return nil, err
	}
	operator := o.Operator
	if operator == "" {
		operator = "any"
	}
	if err := oneOf("operator", operator, []string{"any", "all", "none"}); err != nil {
		return nil, err
	}
	f, err := newFinder(o)
	if err != nil {
		return nil, err
	}
	weigh := o.Method == "bm25"
	threshold := o.Threshold
	if threshold == 0 {
		threshold = defaultBM25
	}
	n := len(o.Keywords)
	return sharedKeyword(uint64(len(c.own)), func(j *judging, start, end int) (float64, bool, error) {
		h := &j.hits
		h.begin(n, weigh, operator == "all")
		for i := start; i < end && !h.enough(); i++ {
			if j.overdue() {
				return 0, false, ErrTimeout
			}
			f.find(j.folded(i).bytes, h)
		}
		score := float64(h.found) / float64(n)
		some := h.found > 0
		if weigh {
			score = h.bm25(j.wordsOfLast())
			some = score >= threshold
		}
		switch operator {
		case "all":
			return score, some && h.found == n, nil
		case "none":
			return 1 - min(score, 1), !some, nil
		}
		return score, some, nil
	}), nil
}

// sharedKeyword asks for the last user message, texts [start, end), unless it is one text that came of
// late.
func sharedKeyword(signal uint64, ask func(j *judging, start, end int) (float64, bool, error)) test {
	return func(j *judging) (float64, bool, error) {
		start, end := j.lastMessage()
		if end != start+1 {
			return ask(j, start, end)
		}
		key := j.c.shared.key(j.r.Texts[start].Bytes).with(signal)
		if f, ok := j.c.shared.keywords.get(key); ok {
			return f.score, f.holds, nil
		}
		score, holds, err := ask(j, start, end)
		if err == nil {
			j.c.shared.keywords.put(key, found{score, holds})
		}
		return score, holds, err
	}
}

func checkKeywords(o *SignalOptions) error {
	if len(o.Keywords) == 0 {
		return fmt.Errorf("it has no keywords")
	}
	if len(o.Keywords) > maxKeywords {
		return fmt.Errorf("it has %d keywords, more than %d", len(o.Keywords), maxKeywords)
	}
	for i, k := range o.Keywords {
		if k == "" || len(k) > maxKeyword {
			return fmt.Errorf("keyword %d has %d bytes, not 1 to %d", i+1, len(k), maxKeyword)
		}
	}
	return nil
}

func newFinder(o *SignalOptions) (finder, error) {
	switch o.Method {
	case "", "exact", "bm25":
		return newExact(o)
	case "regex":
		return newPatterns(o)
	case "fuzzy":
		return newFuzzy(o)
	}
	return nil, oneOf("method", o.Method, []string{"exact", "regex", "fuzzy", "bm25"})
}

// hits are the keywords found so far in one request.
type hits struct {
	counts []int32 // by keyword
	found  int     // keywords
	count  bool    // how often counts too
	all    bool    // the first does not settle it
}

func (h *hits) begin(n int, count, all bool) {
	if cap(h.counts) < n {
		h.counts = make([]int32, n)
	}
	h.counts = h.counts[:n]
	clear(h.counts)
	h.found, h.count, h.all = 0, count, all
}

// enough says that what may still come changes nothing.
func (h *hits) enough() bool {
	return !h.count && (h.found == len(h.counts) || h.found > 0 && !h.all)
}

func (h *hits) has(keyword int) bool { return h.counts[keyword] > 0 }

// hit notes a keyword; false: no more are wanted.
func (h *hits) hit(keyword int) bool {
	if h.counts[keyword] == 0 {
		h.found++
	}
	h.counts[keyword]++
	return !h.enough()
}

func (h *hits) bm25(words int) float64 {
	score := 0.0
	for _, n := range h.counts {
		if n > 0 {
			tf := float64(n)
			score += tf * (bm25K1 + 1) / (tf + bm25K1*(1-bm25B+bm25B*float64(words)/bm25Typical))
		}
	}
	return score
}

// exact finds keywords as they are written.
type exact struct{ m *matcher }

func newExact(o *SignalOptions) (finder, error) {
	m, err := newMatcher(o.Keywords, o.CaseSensitive)
	if err != nil {
		return nil, err
	}
	return exact{m}, nil
}

func (e exact) find(text []byte, h *hits) { e.m.search(text, h.count, h.has, h.hit) }

// patterns find regular expressions of RE2, which are linear.
type patterns []*regexp.Regexp

func newPatterns(o *SignalOptions) (finder, error) {
	var p patterns
	for _, k := range o.Keywords {
		flags := "(?i)"
		if o.CaseSensitive {
			flags = ""
		}
		if _, err := regexp.Compile(k); err != nil {
			return nil, fmt.Errorf("cannot read keyword %q: %w", k, err)
		}
		re, err := regexp.Compile(flags + k)
		if err != nil {
			return nil, fmt.Errorf("cannot read keyword %q: %w", k, err)
		}
		p = append(p, re)
	}
	return p, nil
}

func (p patterns) find(text []byte, h *hits) {
	for i, re := range p {
		if !h.has(i) && re.Match(text) && !h.hit(i) {
			return
		}
	}
}
