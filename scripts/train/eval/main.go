// Eval measures the embedded heads, as they are served, on rows that were not trained on.
//
//	python3 scripts/train/rows.py DATA | go run ./scripts/train/eval [-pii DATA/pii/dev.jsonl] [-floors FILE] [-heldout FILE] [-models DIR]
//
// It prints a figure a line: what, the value in per cent, of how many rows. With -floors, a figure
// below its floor or above its ceiling is an error. With -heldout it prints those of a file beside them: what second.py
// measured of both stages of the guard on whole sources that they had not met.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"kvasir/classify/model"
	"kvasir/classify/tagger"
	"kvasir/scripts/train/floors"
)

// A row is one of rows.py, and what the heads say of it.
type row struct {
	Task, Text, Label, Source, Lang, Split, Role string
	Open                                         bool // its licence allows training on the set

	category   string
	confidence float64
	scores     model.Scores
}

func main() {
	bounds := flag.String("floors", "", "file of the figures to hold")
	pii := flag.String("pii", "", "file of rows with personal data marked")
	heldout := flag.String("heldout", "", "file of figures that second.py wrote")
	models := flag.String("models", "", "directory of own weights; empty: the embedded ones")
	flag.Parse()
	err := run(os.Stdin, os.Stdout, *pii, *bounds, *models)
	if err == nil && *heldout != "" {
		err = floors.PrintHeldOut(os.Stdout, *heldout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, pii, bounds, models string) error {
	rows, err := read(in)
	if err != nil {
		return err
	}
	m, err := model.Embedded()
	if models != "" {
		m, _, err = tagger.Own(models)
	}
	if err != nil {
		return err
	}
	judge(m, rows)
	figures := append(categoryFigures(rows), guardFigures(rows)...)
	if pii != "" {
		more, err := personalFigures(pii, models)
		if err != nil {
			return err
		}
		figures = append(figures, more...)
	}
	floors.Print(out, figures)
	return floors.Hold(bounds, figures)
}

func read(in io.Reader) ([]*row, error) {
	var rows []*row
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		r := new(row)
		if err := json.Unmarshal(lines.Bytes(), r); err != nil {
			return nil, fmt.Errorf("cannot read row %d: %w", len(rows)+1, err)
		}
		rows = append(rows, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read rows: %w", err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("cannot measure: no rows")
	}
	return rows, nil
}

// judge asks the heads about all rows, on all cores.
func judge(m *model.Model, rows []*row) {
	next := make(chan *row)
	var done sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		done.Go(func() {
			s := new(model.Scratch)
			var tokens []model.Token
			for r := range next {
				text := []byte(r.Text)
				tokens = m.Tokenize(tokens[:0], text, s)
				r.judge(m, text, tokens, s)
			}
		})
	}
	for _, r := range rows {
		next <- r
	}
	close(next)
	done.Wait()
}

func (r *row) judge(m *model.Model, text []byte, tokens []model.Token, s *model.Scratch) {
	if r.Task == "guard" {
		r.scores = m.Attack(text, tokens, r.Role == "document", s)
		return
	}
	var p [len(model.Categories)]float32
	m.Category(&p, text, tokens, s)
	best := 0
	for i, v := range p {
		if v > p[best] {
			best = i
		}
	}
	r.category, r.confidence = model.Categories[best], float64(p[best])
}
