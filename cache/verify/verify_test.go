package verify

import (
	"bytes"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"kvasir/classify/model"
)

// threshold is the default of cache.threshold.
const threshold = 0.9

func open(t testing.TB) *Verifier {
	t.Helper()
	v, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// embedder computes the similarity of two texts as the cache does.
type embedder struct {
	m      *model.Model
	s      model.Scratch
	tokens []model.Token
}

func (e *embedder) similarity(a, b string) float64 {
	var x, y [model.Dim]float32
	for _, t := range []struct {
		text string
		dst  *[model.Dim]float32
	}{{a, &x}, {b, &y}} {
		e.tokens = e.m.Tokenize(e.tokens[:0], []byte(t.text), &e.s)
		e.m.Embed(t.dst, e.tokens, &e.s)
	}
	return float64(model.Dot(&x, &y))
}

func newEmbedder(t testing.TB) *embedder {
	m, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return &embedder{m: m}
}

func readLines(t testing.TB, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range lines(string(text)) {
		kept = append(kept, line)
	}
	return kept
}

// readPairs reads lines "label | question | question".
func readPairs(t testing.TB, path string) (pairs [][3]string) {
	t.Helper()
	for _, line := range readLines(t, path) {
		fields := strings.Split(line, " | ")
		if len(fields) != 3 {
			t.Fatalf("line %q of %s has not three fields", line, path)
		}
		pairs = append(pairs, [3]string(fields))
	}
	return pairs
}

// expand returns all lines that a line with {one|another} stands for.
func expand(line string) []string {
	before, rest, _ := strings.Cut(line, "{")
	inner, after, _ := strings.Cut(rest, "}")
	var all []string
	for alternative := range strings.SplitSeq(inner, "|") {
		all = append(all, before+alternative+after)
	}
	return all
}

// TestNearMisses bounds the share of near-misses that would be answered.
func TestNearMisses(t *testing.T) {
	v, e := open(t), newEmbedder(t)
	for _, set := range []struct {
		file  string
		pairs int     // at least this many
		most  float64 // per cent, of all and of each kind with 20 or more pairs
	}{{"testdata/near-en.txt", 250, 2}, {"testdata/near-zh.txt", 200, 3}} {
		answered, all := make(map[string]int), make(map[string]int)
		for _, line := range readLines(t, set.file) {
			kind, text, _ := strings.Cut(line, ": ")
			texts := expand(text)
			for i, a := range texts {
				for _, b := range texts[i+1:] {
					all[kind]++
					all["all"]++
					if score, why := v.Compare([]byte(a), []byte(b), e.similarity(a, b)); why == "" && score >= threshold {
						answered[kind]++
						answered["all"]++
						t.Logf("%s: answered with %.3f: %q and %q", kind, score, a, b)
					}
				}
			}
		}
		if all["all"] < set.pairs {
			t.Errorf("%s: %d pairs, want %d", set.file, all["all"], set.pairs)
		}
		for kind, n := range all {
			if share := 100 * float64(answered[kind]) / float64(n); n >= 20 && share > set.most {
				t.Errorf("%s: %.1f %% of %d near-misses of kind %s answered, want at most %.0f", set.file, share, n, kind, set.most)
			}
		}
		t.Logf("%s: %d of %d answered", set.file, answered["all"], all["all"])
	}
}

// frames rephrase a question. Training does not use them.
var frames = map[string][]func(string) string{
	"testdata/same-en.txt": {
		func(q string) string { return strings.ToUpper(q) },
		func(q string) string { return strings.ToLower(strings.TrimRight(q, "?")) },
		func(q string) string { return "I have a question. " + q + " Thank you very much!" },
		func(q string) string { return "  " + q + " pls " },
		func(q string) string { return "Good morning! Can you please tell me: " + q },
		func(q string) string {
			return strings.NewReplacer("How do I ", "How can I ", "What is ", "What's ", "What's ", "what is ", "How can I ", "how to ", "Is it ", "is it ").Replace(q)
		},
		func(q string) string {
			return strings.NewReplacer("How do I ", "What is the way to ", "colour", "color", "tyre", "tire", "?", " ?").Replace(q)
		},
	},
	"testdata/same-zh.txt": {
		func(q string) string { return "请问" + q + "？" },
		func(q string) string { return "你好，" + q + "呢？谢谢啦" },
		func(q string) string { return "麻烦您，" + q + "，多谢" },
		func(q string) string { return "我想问一下" + q + "!" },
		func(q string) string { return q + "呀" },
		func(q string) string {
			return strings.NewReplacer("怎么", "如何", "为什么", "为何", "如何", "怎样", "多长时间", "多久", "可以", "能", "哪座", "哪一座").Replace(q)
		},
		func(q string) string {
			return strings.NewReplacer("什么", "啥", "鸡", "雞", "吗", "嗎", "区别", "區別", "时", "時", "罗", "羅").Replace(q)
		},
	},
}

// TestRewordings bounds the share of trivial rewordings that are answered.
func TestRewordings(t *testing.T) {
	v, e := open(t), newEmbedder(t)
	for file, least := range map[string]float64{"testdata/same-en.txt": 90, "testdata/same-zh.txt": 85} {
		answered, all := 0, 0
		for _, q := range readLines(t, file) {
			for i, frame := range frames[file] {
				other := frame(q)
				if other == q {
					continue
				}
				all++
				if score, why := v.Compare([]byte(q), []byte(other), e.similarity(q, other)); why == "" && score >= threshold {
					answered++
				} else {
					t.Logf("frame %d: %.3f %q: %q and %q", i, score, why, q, other)
				}
			}
		}
		share := 100 * float64(answered) / float64(all)
		t.Logf("%s: %.1f %% of %d answered", file, share, all)
		if all < 250 || share < least {
			t.Errorf("%s: %.1f %% of %d rewordings answered, want %.0f of at least 250", file, share, all, least)
		}
	}
}

// TestRules checks which rule refuses a pair; "": none does.
func TestRules(t *testing.T) {
	v := open(t)
	for _, fields := range readPairs(t, "testdata/rules.txt") {
		want := strings.TrimSpace(fields[0])
		if want == "-" {
			want = ""
		}
		for _, pair := range [][2]string{{fields[1], fields[2]}, {fields[2], fields[1]}} {
			if _, why := v.Compare([]byte(pair[0]), []byte(pair[1]), 0.9); why != want {
				t.Errorf("%q and %q: refused by %q, want %q", pair[0], pair[1], why, want)
			}
		}
	}
}

// TestLong: texts beyond MaxText are compared by their bytes.
func TestLong(t *testing.T) {
	v := open(t)
	long := bytes.Repeat([]byte("why "), MaxText)
	if score, why := v.Compare(long, long, 1); score != 1 || why != "" {
		t.Errorf("the same long text: %v, %q", score, why)
	}
	if score, why := v.Compare(long, []byte("why"), 1); score != 0 || why != "long" {
		t.Errorf("a long text and a short one: %v, %q", score, why)
	}
}

// TestConcurrent compares from many goroutines, each with its own memory.
func TestConcurrent(t *testing.T) {
	v := open(t)
	a, b := []byte("How do I sort a list in Python?"), []byte("how can i sort a list in python")
	want, _ := v.Compare(a, b, 0.95)
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for range 50 {
				if got, why := v.Compare(a, b, 0.95); got != want || why != "" {
					t.Errorf("%v, %q, want %v", got, why, want)
				}
				v.Compare([]byte("红烧肉怎么做"), []byte("鱼香肉丝怎么做"), 0.8)
			}
		})
	}
	done.Wait()
}

// FuzzCompare compares any two texts: no panic, a score from 0 to 1, and the same score when they
// are swapped.
func FuzzCompare(f *testing.F) {
	for _, pair := range [][2]string{
		{"What is 2+2?", "what's 2 + 3"}, {"北京到上海多远", "上海到北京多远"}, {"`rm -rf /`", "rm \"x\" 'y' it's"},
		{"", " \n\t."}, {"\xff\xfe", "\u0301a\u0301"}, {"1,000.50.3 1990s 5k 第三", "一千零五 两百万 二〇二四年 twenty five thousand and one"},
		{"ＦＵＬＬ　ｗｉｄｔｈ", "İıſﬀ"}, {"C++ C# .NET node.js a_b x->y https://a.b/c", "$5 €6 %7 --flag -x"},
	} {
		f.Add(pair[0], pair[1], 0.9)
	}
	v := open(f)
	f.Fuzz(func(t *testing.T, a, b string, similarity float64) {
		score, why := v.Compare([]byte(a), []byte(b), similarity)
		if !(score >= 0 && score <= 1) {
			t.Fatalf("score %v", score)
		}
		other, _ := v.Compare([]byte(b), []byte(a), similarity)
		if len(a) < 64 && len(b) < 64 && why == "" && math.Abs(score-other) > 0.5 {
			t.Fatalf("score %v, and %v the other way round", score, other)
		}
		if same, why := v.Compare([]byte(a), []byte(a), 1); len(a) < 256 && why != "" {
			t.Fatalf("a text refuses itself: %v, %q", same, why)
		}
	})
}

// TestAllocs: the memory of a comparison does not grow with the texts.
func TestAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector drops pooled memory")
	}
	v := open(t)
	for _, text := range []string{"How do I sort a list of people by age?", strings.Repeat("How do I sort the 14th list? 怎么排序 ", 60)} {
		a, b := []byte(text), []byte(strings.ToUpper(text)+" now")
		v.Compare(a, b, 0.9)
		if n := testing.AllocsPerRun(20, func() { v.Compare(a, b, 0.9) }); n > 0 {
			t.Errorf("%v allocations for %d bytes", n, len(text))
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	v := open(b)
	for _, bench := range []struct{ name, a, b string }{
		{"same", "How do I sort a list in Python?", "please tell me how to sort a list in python"},
		{"reworded", "What is the best way to lose weight quickly?", "How can I shed a few pounds fast without a gym?"},
		{"chinese", "红烧肉怎么做才好吃又不油腻", "请问怎样把红烧肉烧得香而不腻"},
		{"long", strings.Repeat("How do I sort a list of people by their age? ", 40), strings.Repeat("How can we order a table of clients by name? ", 40)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.Compare([]byte(bench.a), []byte(bench.b), 0.9)
			}
		})
	}
}
