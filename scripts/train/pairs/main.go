// Pairs measures how well the semantic cache tells questions apart, and prints
// what its pair model sees of them, for training.
//
//	pairs [-floors FILE] [-data DIR] TEXTS   prints the figures
//	pairs -dump TEXTS > rows.bin             prints the rows to train and to hold out
//	pairs -names                             prints the names of their features
//	pairs -missed TEXTS                      prints the written pairs that are judged wrongly
//
// TEXTS is scripts/train/data. DIR holds semcache/dev.jsonl, which is only
// measured: its licence does not allow training.
package main

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kvasir/cache/verify"
	"kvasir/scripts/train/floors"
)

func main() {
	bounds := flag.String("floors", "", "file of the figures to hold")
	data := flag.String("data", "", "folder of the public sets")
	dump := flag.Bool("dump", false, "print rows for training")
	names := flag.Bool("names", false, "print the names of the features, one a line")
	missed := flag.Bool("missed", false, "print the pairs that are judged wrongly")
	flag.Parse()
	if *names {
		fmt.Println(strings.Join(verify.FeatureNames(), "\n"))
		return
	}
	if err := run(flag.Arg(0), *data, *bounds, *dump, *missed); err != nil {
		fmt.Fprintln(os.Stderr, "pairs:", err)
		os.Exit(1)
	}
}

func run(texts, data, bounds string, dump, missed bool) error {
	j, err := newJudge(!dump)
	if err != nil {
		return err
	}
	groups, err := readGroups(filepath.Join(texts, "pairs-*.txt"))
	if err != nil {
		return err
	}
	questions, err := readQuestions(texts)
	if err != nil {
		return err
	}
	rows := append(rowsOf(groups), reworded(groups, questions)...)
	if dump {
		return dumpRows(j, append(rows, mined(j, groups, questions)...))
	}
	results := j.judge(rows)
	if missed {
		for _, r := range results {
			if r.held && (r.label == 1) != r.hit(threshold) {
				fmt.Printf("%v %.2f %.2f %-10s %s\n  %s\n  %s\n", r.label, r.score, r.similarity, r.why, r.kind, r.a, r.b)
			}
		}
		return nil
	}
	figures := written(results)
	if data != "" {
		public, err := measurePublic(j, filepath.Join(data, "semcache", "dev.jsonl"))
		if err != nil {
			return err
		}
		figures = append(figures, public...)
	}
	floors.Print(os.Stdout, figures)
	return floors.Hold(bounds, figures)
}

// dumpRows writes rows as float32, little-endian: the number of features once; then
// for each row its features, its label, group, 1 if it is held out, 1 if a rule
// refuses it, and the code of its kind.
func dumpRows(j *judge, rows []row) error {
	var all []string
	for _, r := range rows {
		all = append(all, r.a, r.b)
	}
	j.embed(all)
	w := bufio.NewWriterSize(os.Stdout, 1<<20)
	lines := make([][]float32, len(rows))
	parallel(len(rows), func() func(int) {
		return func(i int) {
			r := rows[i]
			line, why := j.verifier.Features(nil, []byte(r.a), []byte(r.b), j.similarity(r.a, r.b))
			lines[i] = append(line, r.label, float32(r.group), flagged(r.held), flagged(why != ""), kinds[r.kind], flagged(r.lang == "zh"))
		}
	})
	if err := binary.Write(w, binary.LittleEndian, uint32(len(lines[0]))); err != nil {
		return err
	}
	for _, line := range lines {
		if err := binary.Write(w, binary.LittleEndian, line); err != nil {
			return err
		}
	}
	return w.Flush()
}

// kinds are the codes of kinds of rows in the dump; near-misses have 0.
var kinds = map[string]float32{"paraphrase": 1, "trivial": 2, "mined": 3, "reworded": 4}

func flagged(is bool) float32 {
	if is {
		return 1
	}
	return 0
}
