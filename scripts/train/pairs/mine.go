// Mine: pairs that nobody wrote: neighbours that are different questions, and
// trivial rewordings.

package main

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"kvasir/classify/model"
)

// A question is a line of data/question*.txt.
type question struct{ text, lang string }

// readQuestions reads a third of the short questions that were written for the
// classifiers: of those in question-* and question2-*. Later ones are for the most part
// searches and exam questions, more of which make the model shyer: of what was written
// to be the same it answers 0.5 points less with them.
func readQuestions(dir string) ([]question, error) {
	paths, err := filepath.Glob(filepath.Join(dir, `question[2\-]*.txt`))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("cannot find questions in %q: %w", dir, err)
	}
	var questions []question
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read questions: %w", err)
		}
		lang := ""
		for _, l := range []string{"en", "zh"} {
			if strings.HasSuffix(path, "-"+l+".txt") {
				lang = l
			}
		}
		lines := bufio.NewScanner(file)
		body, count, last := false, 0, ""
		keep := func() {
			if count == 1 && len(last) >= 10 && len(last) <= 150 && lang != "" && hash(last)%3 == 0 {
				questions = append(questions, question{last, lang})
			}
			count = 0
		}
		for lines.Scan() {
			line := strings.TrimSpace(lines.Text())
			switch {
			case line == "%%":
				if body {
					keep()
				}
				body = true
			case body && line != "" && line[0] != '@':
				count++
				last = line
			case body && strings.HasPrefix(line, "@user:"):
				count += 2
			}
		}
		keep()
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
	return questions, nil
}

// mined pairs each question with its neighbours in meaning, which are others.
func mined(j *judge, groups []group, questions []question) []row {
	const neighbours = 3
	type entry struct {
		text, lang string
		group      int
		held       bool
	}
	var all []entry
	for i, g := range groups {
		for _, t := range g.same {
			all = append(all, entry{t.text, g.lang, i, g.held})
		}
	}
	for i, q := range questions {
		all = append(all, entry{q.text, q.lang, len(groups) + i, isHeld(q.text)})
	}
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = e.text
	}
	j.embed(texts)
	vectors := make([]*vector, len(all))
	for i, t := range texts {
		vectors[i] = j.known[t]
	}
	found := make([][]int, len(all))
	x := newIndex(vectors)
	parallel(len(all), func() func(int) {
		return func(i int) { found[i] = x.nearest(vectors[i], neighbours+4) }
	})
	var rows []row
	for i, near := range found {
		n := 0
		for _, k := range near {
			if all[k].group == all[i].group || texts[k] == texts[i] || all[k].held != all[i].held || n == neighbours {
				continue
			}
			if d := model.Dot(vectors[i], vectors[k]); d < 0.4 || d > 0.97 {
				continue
			}
			n++
			rows = append(rows, row{texts[i], texts[k], 0, all[i].group, all[i].held, all[i].lang, "mined"})
		}
	}
	return rows
}

func isHeld(text string) bool { return hash(text)/3%5 == 0 }

func hash(text string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return h.Sum32()
}

// reworded pairs questions with trivial rewordings of them.
func reworded(groups []group, questions []question) []row {
	var rows []row
	add := func(text, lang string, group int, held bool) {
		for n := range uint32(2) {
			if other := reword(text, lang, hash(text)/7+n*5); other != text {
				rows = append(rows, row{text, other, 1, group, held, lang, "reworded"})
			}
		}
	}
	for i, g := range groups {
		add(g.same[0].text, g.lang, i, g.held)
	}
	for i, q := range questions {
		add(q.text, q.lang, len(groups)+i, isHeld(q.text))
	}
	return rows
}

// reword changes how a question is put, not what it asks. n chooses how.
func reword(text, lang string, n uint32) string {
	if lang == "zh" {
		bare := strings.TrimRight(text, "？?。！ ")
		before := []string{"请问", "请问一下，", "麻烦问一下，", "你好，", "我想知道", "想问问", "能告诉我", "", ""}
		after := []string{"？", "呢？", "啊", "", "，谢谢", "？谢谢！", "?", "呀"}
		return before[n%uint32(len(before))] + bare + after[n/16%uint32(len(after))]
	}
	bare := strings.TrimRight(text, "?.! ")
	lower := lowerFirst(bare)
	switch n % 8 {
	case 0:
		return strings.ToLower(bare)
	case 1:
		return "Please tell me: " + lower + "?"
	case 2:
		return "Hi, " + lower + ", please?"
	case 3:
		return bare + "??? Thanks!"
	case 4:
		return "Quick question: " + lower
	case 5:
		return strings.ToUpper(bare[:1]) + bare[1:] + "."
	case 6:
		return contracted(bare) + "?"
	}
	return "hello! " + strings.ToLower(contracted(bare)) + " thanks in advance"
}

func lowerFirst(text string) string {
	if r, n := utf8.DecodeRuneInString(text); unicode.IsUpper(r) && len(text) > n && unicode.IsLower(rune(text[n])) {
		return string(unicode.ToLower(r)) + text[n:]
	}
	return text
}

var contractions = strings.NewReplacer("What is ", "What's ", "what is ", "what's ", "Who is ", "Who's ", " do not ", " don't ",
	" does not ", " doesn't ", "How do I ", "How can I ", "how do I ", "how can I ", "Is not ", "Isn't ", " cannot ", " can't ",
	"I am ", "I'm ", "Where is ", "Where's ", "How to ", "How do you ", "how to ", "how do i ")

func contracted(text string) string { return contractions.Replace(text) }
