// Complexity: how hard the last user text is to answer, by a linear rule over
// what it looks like. It costs no weights and no more than a pass.

package classify

import (
	"fmt"
	"math"
	"slices"
	"sync"
)

// KindComplexity has the values easy, medium and hard.
const KindComplexity Kind = "complexity"

const (
	easy   = "easy"
	medium = "medium"
	hard   = "hard"
)

func complexities() []string { return []string{easy, medium, hard} }

// The words that speak for work to be done, in the languages most asked in.
// They are looked for once each: it counts which occur, not how often.
var (
	reasoning = []string{
		"prove", "proof", "derive", "derivation", "theorem", "lemma", "analyze", "analyse", "analysis", "evaluate", "compare", "contrast",
		"optimize", "optimise", "design", "architecture", "implement", "algorithm", "complexity", "trade-offs", "tradeoffs", "debug", "refactor",
		"step by step", "explain why", "justify", "assess", "critique", "estimate", "calculate", "compute", "determine", "hypothesis", "strategy",
		"calculate the", "according to the", "best describes", "most likely", "which of the following", "equation", "probability", "distribution",
		"concurrent", "distributed", "thread-safe", "simulate", "integral", "matrix", "eigenvalue", "asymptotic", "implications",
		"证明", "推导", "分析", "评估", "比较", "对比", "优化", "设计", "架构", "实现", "算法", "复杂度", "计算", "为什么", "解释", "求解", "方程", "概率", "下列", "影响",
		"beweise", "analysiere", "vergleiche", "berechne", "entwirf", "démontre", "analyse", "calcule", "compare", "demuestra", "analiza", "calcula", "diseña",
		"докажи", "проанализируй", "вычисли", "сравни", "証明", "分析", "比較", "計算", "設計",
	}
	constraints = []string{
		"must", "at least", "at most", "exactly", "without", "such that", "given", "assume", "suppose", "unless", "except",
		"constraint", "requirements", "subject to", "let", "where", "between", "respectively", "initially",
		"必须", "至少", "至多", "假设", "如果", "已知", "满足", "不超过", "每", "设", "其中", "muss", "mindestens", "wenn", "si", "debe", "al menos", "если", "ただし",
	}
	steps = []string{
		"first", "second", "then", "next", "finally", "after", "before", "also", "additionally", "followed by", "how many", "how much", "each", "per", "total", "altogether", "left",
		"首先", "然后", "接着", "最后", "并且", "同时", "再", "zuerst", "dann", "danach", "schließlich", "puis", "ensuite", "luego", "después", "затем",
	}
	everyday = []string{
		"hi", "hello", "hey", "thanks", "thank you", "please", "weather", "today", "tomorrow", "my", "me", "you", "translate", "remind", "play", "call", "set",
		"what is the capital", "who is", "how do you say", "tell me", "can you", "joke", "recipe", "buy", "book", "change", "turn", "find",
		"你好", "谢谢", "请问", "天气", "今天", "翻译", "推荐", "hallo", "danke", "bonjour", "merci", "hola", "gracias", "привет", "спасибо", "こんにちは",
	}
)

// The rule: the sum of a weight for each trait, 0 easy to 1 hard. The weights
// are those of a ridge regression on everyday requests (clinc, 0), word
// problems of primary school and small programs (gsm8k and mbpp, 0.5), and
// exams in subjects that reckon (MMLU-Pro and TheoremQA, 1); those of traits
// that can only make a text harder are not below 0. Of rows not seen, 83 % of
// everyday requests are easy and none hard, 68 % of the middle medium, 70 % of
// exams hard and 3 % easy.
var complexityRule = [traits]float64{
	-0.54,       // always
	1.59, -0.59, // length: logarithm of the words, and its square
	0.24, 0.34, // numbers; formulas
	0.10, 0.03, // code; lists
	-0.19,      // lines
	1.16,       // letters a word
	0.18, 0.05, // words of reasoning, of constraints
	-0.32, -0.49, // of steps, of everyday life
}

// Scores from which on a text is medium, and hard.
const (
	fromMedium = 0.40
	fromHard   = 0.67
)

// typicalWord is how many letters a word has.
const typicalWord = 4.8

// traits is how many there are.
const traits = 13

// traitCounts are how many words of each group stand in a text.
type traitCounts [len(groups)]int

// traitsOf are the traits of a text of this shape, each about 0 to 1.
func traitsOf(s *shape, counts traitCounts) (x [traits]float64) {
	words := math.Log1p(float64(s.words) - 0.4*float64(s.unspaced))
	x[0] = 1
	x[1] = words / 5
	x[2] = words * words / 25
	x[3] = math.Log1p(float64(s.numbers)) / 3
	x[4] = math.Log1p(float64(s.math)) / 3
	x[5] = min(float64(s.code), 1)
	x[6] = math.Log1p(float64(s.lists)) / 3
	x[7] = math.Log1p(float64(s.lines)) / 4
	x[8] = typicalWord / 12.0 // of scripts without spaces, whose words are not told apart
	if spaced := s.words - s.unspaced; spaced > s.unspaced {
		x[8] = min(float64(s.letters)/float64(spaced), 12) / 12
	}
	for i, n := range counts {
		x[9+i] = min(float64(n), 4) / 4
	}
	return x
}

// groups are the words that are looked for, and where the patterns of each
// begin in the matcher.
var groups = [...][]string{reasoning, constraints, steps, everyday}

// maxTraitWords is how many words occurring can remember.
const maxTraitWords = 512

var traitWords = sync.OnceValue(func() *matcher {
	words := slices.Concat(groups[:]...)
	m, err := newMatcher(words, false)
	if err != nil || len(words) > maxTraitWords {
		panic(fmt.Sprintf("BUG: %d words: %v", len(words), err))
	}
	return m
})

// occurring counts which words of each group stand in the text.
func occurring(text []byte) (n traitCounts) {
	var seen [maxTraitWords / 64]uint64 // by pattern
	has := func(p int) bool { return seen[p/64]>>(p%64)&1 != 0 }
	traitWords().search(text, false, has, func(p int) bool {
		if has(p) {
			return true
		}
		seen[p/64] |= 1 << (p % 64)
		group, first := 0, 0
		for p >= first+len(groups[group]) {
			first += len(groups[group])
			group++
		}
		n[group]++
		return true
	})
	return n
}

// findComplexity judges the last user message: its shape whole, its words at
// its beginning and end if it is long.
func (j *judging) findComplexity() error {
	if err := j.find(KindStructure); err != nil || j.shape.bytes == 0 {
		return err
	}
	text := j.lastUser()
	key := j.c.shared.key(text)
	counts, ok := j.c.shared.words.get(key)
	if !ok {
		counts = occurring(text)
		j.c.shared.words.put(key, counts)
	}
	c := &j.v.Complexity
	for i, x := range traitsOf(&j.shape, counts) {
		c.Score += x * complexityRule[i]
	}
	c.Score = min(max(c.Score, 0), 1)
	switch {
	case c.Score < fromMedium:
		c.Level = easy
	case c.Score < fromHard:
		c.Level = medium
	default:
		c.Level = hard
	}
	return nil
}

func isComplexity(j *judging, value string) (float64, bool) {
	return j.v.Complexity.Score, j.v.Complexity.Level == value
}

func reportComplexity(v *Verdict) string {
	return fmt.Sprintf("%s %.2f", v.Complexity.Level, v.Complexity.Score)
}

func foundComplexity(j *judging) string {
	if j.v.Complexity.Level == "" {
		return "none"
	}
	return j.v.Complexity.Level + " " + scored(j.v.Complexity.Score)
}
