// `kvasir similar`: would one question be answered from another one's entry in the cache, one JSON line for each pair.

package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"kvasir/cache"
	"kvasir/cache/embedded"
	"kvasir/classify"
	"kvasir/command/wiring"
	"kvasir/config"
)

func similarCommand(p Program) *cobra.Command {
	flags := configFlags{builtIn: p.Config}
	var store string
	cmd := &cobra.Command{
		Use:   "similar",
		Short: "Say whether one question would be answered from another one's cache entry",
		Long: `Reads lines {"a": "...", "b": "..."} and says for each, in the same order,
whether a request that asks b would get the cached answer to a: the similarity
of their embeddings (a cosine), the score that verification leaves of it (0 to
1), whether that is a hit (score >= cache.threshold), and why not. With --store
it reads a file of texts, one a line, and takes lines {"b": "..."}: the answer
names the text whose entry would answer or came nearest to it as a, and its
line. Requests have to agree in everything else, see docs/cache.md.`,
		Example: `  echo '{"a": "How tall is Mont Blanc?", "b": "how high is mont blanc"}' | kvasir similar
  kvasir similar --store questions.txt < asked.jsonl`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := flags.load(cmd)
			if err != nil {
				return err
			}
			return similarLines(g.Config, store, stdin(cmd, "one JSON object a line"), cmd.OutOrStdout())
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&store, "store", "", "a file of texts, one a line, to look each b up in")
	return cmd
}

// A similarPair is one line of output.
type similarPair struct {
	A          *string `json:"a,omitempty"`    // with a store: the text that answers, or is nearest
	Line       int     `json:"line,omitempty"` // of the store, from 1
	Similarity float64 `json:"similarity"`
	Score      float64 `json:"score"`
	Hit        bool    `json:"hit"`
	Why        string  `json:"why"` // it is no hit
}

// A comparer answers lines as the cache would.
type comparer struct {
	cache      *cache.Cache
	classifier *classify.Classifier
	lines      map[cache.ID]int // of the texts of a store; nil: pairs are compared
}

func similarLines(c *config.Config, path string, in io.Reader, out io.Writer) error {
	o := wiring.Classify(c)
	o.Timeout, o.Decisions = 0, nil
	classifier, err := classify.New(o)
	if err != nil {
		return err
	}
	m := &comparer{classifier: classifier}
	if path == "" {
		m.cache, err = wiring.Cache(&c.Cache, nil)
		if err != nil {
			return err
		}
		return answerLines(in, out, func() lineAnswerer { return m.pair })
	}
	texts, err := readLines(path)
	if err != nil {
		return err
	}
	store, err := embedded.Open(embedded.Options{MaxEntries: max(len(texts), 1), MaxBytes: 1 << 40})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	if m.cache, err = wiring.Cache(&c.Cache, store); err != nil {
		return err
	}
	if err := m.fill(texts); err != nil {
		return err
	}
	return answerLines(in, out, func() lineAnswerer { return m.nearest })
}

// query is a question in the one scope that there is here.
func (m *comparer) query(text string) *cache.Query {
	q := &cache.Query{Text: []byte(text), MaxAge: -1}
	q.Embed = func(dst *[cache.Dim]float32) bool { return m.classifier.Embed(dst, cache.Unshouted(q.Text)) }
	return q
}

func (m *comparer) pair(line []byte) (any, error) {
	var p struct{ A, B *string }
	if err := readObject(line, &p, `"a" and "b"`); err != nil {
		return nil, err
	}
	if p.A == nil || p.B == nil {
		return nil, errors.New(`the line has no "a" or no "b"`)
	}
	r := m.cache.Compare(m.query(*p.A), m.query(*p.B))
	return similarPair{Similarity: round(r.Similarity), Score: round(r.Score), Hit: r.Hit, Why: r.Why}, nil
}

func (m *comparer) nearest(line []byte) (any, error) {
	var p struct{ B *string }
	if err := readObject(line, &p, `"b"`); err != nil {
		return nil, err
	}
	if p.B == nil {
		return nil, errors.New(`the line has no "b"`)
	}
	r := m.cache.Lookup(m.query(*p.B))
	if r.Err != nil {
		return nil, r.Err
	}
	found := similarPair{Similarity: round(r.Similarity), Score: round(r.Score), Hit: r.Hit, Why: r.Why}
	if r.Entry != nil {
		found.A, found.Line = &r.Entry.Text, m.lines[r.Entry.ID]
	}
	return found, nil
}

// fill puts texts into the store, on all processors.
func (m *comparer) fill(texts []string) error {
	m.lines = make(map[cache.ID]int, len(texts))
	var mu sync.Mutex
	var group errgroup.Group
	threads := runtime.GOMAXPROCS(0)
	for t := range threads {
		group.Go(func() error {
			for i := t; i < len(texts); i += threads {
				id, err := m.cache.Put(m.query(texts[i]), nil)
				if err != nil {
					return fmt.Errorf("cannot keep line %d: %w", i+1, err)
				}
				mu.Lock()
				m.lines[id] = i + 1
				mu.Unlock()
			}
			return nil
		})
	}
	return group.Wait()
}

// readLines reads a file of texts. An empty line is one too, so that numbers of
// lines stay those of the file.
func readLines(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the texts: %w", err)
	}
	data = bytes.TrimSuffix(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\n"))
	return strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n"), nil
}

// round keeps four digits, as the headers show.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
