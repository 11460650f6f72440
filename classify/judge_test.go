// Tests of the way of a request: that nothing passes a guard unjudged, and that nothing more is computed than is asked for.

package classify

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func guardOf(c *Classifier, r *Request) Guard {
	v := c.Judge(r)
	defer v.Release()
	return v.Blocked()
}

func TestGuards(t *testing.T) {
	c := newSaying(t, blocking())
	card := "my card is 4111 1111 1111 1111"
	role := func(r Role, text string) *Request {
		return &Request{Texts: []Text{{[]byte(text), r, 0}}}
	}
	for _, row := range []struct {
		name string
		r    *Request
		want Guard
	}{
		{"nothing", &Request{}, Passed},
		{"innocent", said("hello"), Passed},
		{"attack", said("ATTACK"), ByJailbreak},
		{"attack in the past", said("ATTACK", "never mind"), ByJailbreak},
		{"attack over turns", said("AT", "TACK"), ByJailbreak},
		{"attack over turns with zero-width padding", said("AT"+strings.Repeat("\u200b", 900), "TACK"), ByJailbreak},
		{"attack over turns around a long one", said("AT", strings.Repeat("word ", 1000), "TACK"), ByJailbreak},
		{"attack over parts", &Request{Texts: []Text{{[]byte("AT"), User, 0}, {[]byte("TACK"), User, 0}}}, ByJailbreak},
		{"attack over the strings of a tool", &Request{Texts: []Text{{[]byte("AT"), ToolDefinition, -1}, {[]byte("TACK"), ToolDefinition, -1}}}, ByJailbreak},
		{"attack in two prompts", &Request{Texts: []Text{{[]byte("AT"), User, -1}, {[]byte("TACK"), User, -1}}}, Passed},
		{"attack in a system prompt", role(System, "ATTACK"), ByJailbreak},
		{"attack in an answer", role(Assistant, "ATTACK"), ByJailbreak},
		{"attack in no known role", role(Other, "ATTACK"), ByJailbreak},
		{"attack in a role that is no role", role(200, "ATTACK"), ByJailbreak},
		{"injection in a document", role(Document, "INDIRECT"), ByJailbreak},
		{"injection in a result", role(Tool, "INDIRECT"), ByJailbreak},
		{"what is one only in a document", said("INDIRECT"), Passed},
		{"card", said(card), ByPII},
		{"card in a result", role(Tool, card), ByPII},
		{"card in the past", said(card, "forget it"), ByPII},
		{"card at the end", said(strings.Repeat("one word and another ", 5000) + card), ByPII},
		{"attack at the end", said(strings.Repeat("one word and another ", 5000) + "ATTACK"), ByJailbreak},
		{"attack where pieces meet", said(strings.Repeat("word ", (maxWhole+attackPiece)/5-1) + "ATTACK " + strings.Repeat("word ", 5000)), ByJailbreak},
		{"attack in the middle of a long text", said(strings.Repeat("word ", 10000) + "ATTACK " + strings.Repeat("word ", 10000)), ByJailbreak},
		{"attack at the end of a long text", said(strings.Repeat("word ", 20000) + "ATTACK"), ByJailbreak},
		{"card over parts", parts(User, "my card 4111 1111", "1111 1111, thanks"), ByPII},
		{"card over many parts", parts(User, "4111 ", "1111", " 1111 ", "1111"), ByPII},
		{"card over long parts", parts(User, strings.Repeat("word ", 500)+"4111 1111 ", "1111 1111"+strings.Repeat(" word", 500)), ByPII},
		{"key over parts", parts(System, "ghp_16C7e42F292c6912E", "7710c838347Ae178B4a"), ByPII},
		{"numbers of a record", parts(Tool, "4111", "1111", "1111", "1111"), Passed},
		{"card over two messages", said("4111 1111", "1111 1111"), ByPII},
		{"numbers of two messages", said("4111 1112", "1111 1111"), Passed},
		{"name", said("Name"), ByPII},
		{"both", said("ATTACK " + card), ByJailbreak},
		{"card in base64", said("bXkgY2FyZCBpcyA0MTExIDExMTEgMTExMSAxMTEx"), ByPII},
		{"card with zero widths", said("4111\u200b1111\u200b1111\u200b1111"), ByPII},
		{"unread", &Request{Unread: 1}, ByFailedJailbreak},
	} {
		if got := guardOf(c, row.r); got != row.want {
			t.Errorf("%s: %v, not %v", row.name, got, row.want)
		}
	}
}

// parts is one message.
func parts(role Role, texts ...string) *Request {
	r := &Request{Messages: 1}
	for _, t := range texts {
		r.Texts = append(r.Texts, Text{[]byte(t), role, 0})
	}
	return r
}

// What lies over two parts is found in both, once, in order, and takes the
// place of what its piece alone looked like.
func TestOverParts(t *testing.T) {
	c := newSaying(t, blocking())
	texts := []string{"mail me@example.org, card 4111 1111", "\u200b 1111 1111 and 5555555555554444"}
	v := c.Judge(parts(User, texts...))
	defer v.Release()
	var got []string
	for _, e := range v.PII.Spans {
		got = append(got, e.Type.String()+" "+texts[e.Text][e.Start:e.End])
	}
	want := []string{"EMAIL_ADDRESS me@example.org", "CREDIT_CARD 4111 1111", "CREDIT_CARD 1111 1111", "CREDIT_CARD 5555555555554444"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestGuardsLetPass(t *testing.T) {
	o := blocking()
	o.Jailbreak.Action = Annotate
	o.PII.Allow = []string{"PERSON"}
	o.Decisions = []Decision{{Name: "bank", Explicit: true, AllowPII: []string{"IBAN_CODE"}, When: Condition{Is: []Is{{KindPII, []string{"IBAN_CODE"}}}}}}
	c := newSaying(t, o)
	v := c.Judge(said("ATTACK by Name to DE89370400440532013000 and me@example.org"))
	defer v.Release()
	if !v.Jailbreak.Flagged || v.Jailbreak.Type != "jailbreak" || len(v.PII.Spans) != 3 ||
		!slices.Equal(v.PII.Denied, []string{"EMAIL_ADDRESS"}) || v.Decision == nil || v.Blocked() != ByPII {
		t.Errorf("%+v", v)
	}
}

// A guard that does not come to its end is an error, however it fails, and what
// is an error is refused.
func TestNothingPassesUnjudged(t *testing.T) {
	waits := func(Kind) { time.Sleep(2 * time.Second) }
	panics := func(Kind) { panic("fault") }
	only := func(kind Kind, fault func(Kind)) func(Kind) {
		return func(k Kind) {
			if k == kind {
				fault(k)
			}
		}
	}
	for _, row := range []struct {
		name  string
		fault func(Kind)
		want  Guard
	}{
		{"jailbreak panics", only(KindJailbreak, panics), ByFailedJailbreak},
		{"pii panics", only(KindPII, panics), ByFailedPII},
		{"all panic", panics, ByFailedJailbreak},
		{"jailbreak takes its time", only(KindJailbreak, waits), ByFailedJailbreak},
		{"pii takes its time", only(KindPII, waits), ByFailedPII},
		{"keyword panics", only(KindKeyword, panics), Passed},
		{"category takes its time", only(KindCategory, waits), Passed},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := blocking()
				o.Timeout, o.Threads, o.Fault = time.Second, 1, row.fault
				o.Signals = []SignalOptions{{Name: "a", Kind: KindKeyword, Keywords: []string{"hello"}}}
				o.Decisions = []Decision{{Name: "not a", When: Condition{Not: &Condition{Is: []Is{{KindKeyword, []string{"a"}}}}}}}
				c := newSaying(t, o)
				for range 3 { // the thread is there again after each
					r := said("hello")
					r.Auto = true
					v := c.Judge(r)
					if v.Blocked() != row.want || v.Decision != nil {
						t.Errorf("%v, %+v", v.Blocked(), v)
					}
					var panicked *PanicError
					for _, err := range []error{v.Jailbreak.Err, v.PII.Err} {
						if err != nil && !errors.Is(err, ErrTimeout) && !errors.As(err, &panicked) {
							t.Errorf("error %v", err)
						}
					}
					v.Release()
				}
				o.Jailbreak.AllowOnError, o.PII.AllowOnError = true, true
				if got := guardOf(newSaying(t, o), said("hello")); got != Passed {
					t.Errorf("allowed on error, but %v", got)
				}
			})
		})
	}
}

// Who gets no thread in time is not judged, and so not let through.
func TestNoThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		o := blocking()
		o.Timeout, o.Threads = time.Second, 1
		var once sync.Once
		o.Fault = func(Kind) { once.Do(func() { <-release }) }
		c := newSaying(t, o)
		go guardOf(c, said("hello"))
		synctest.Wait()
		start := time.Now()
		v := c.Judge(said("hello"))
		if v.Blocked() != ByFailedJailbreak || v.Jailbreak.Err != ErrBusy || v.PII.Err != ErrBusy || time.Since(start) != maxWait {
			t.Errorf("%v %v after %v", v.Blocked(), v.Jailbreak.Err, time.Since(start))
		}
		v.Release()
		close(release)
		synctest.Wait()
		if got := guardOf(c, said("hello")); got != Passed {
			t.Errorf("with a thread again: %v", got)
		}
	})
}

// A bug outside of any signal is caught too.
func TestPanicOutsideSignals(t *testing.T) {
	c := newSaying(t, blocking())
	c.explicit = []rule{{&Decision{Name: "x"}, condition{asks: []ask{{row: 99}}}}}
	if got := guardOf(c, said("hello")); got != ByFailedPII {
		t.Errorf("%v", got)
	}
}

func TestOnlyWhatIsAskedFor(t *testing.T) {
	o := Options{
		Signals: []SignalOptions{
			{Name: "a", Kind: KindKeyword, Keywords: []string{"apple"}},
			{Name: "b", Kind: KindEmbedding, Phrases: []string{"banana"}},
		},
		Decisions: []Decision{
			{Name: "apple", When: Condition{Is: []Is{{KindCategory, []string{"math"}}, {KindKeyword, []string{"a"}}}}, Explicit: true},
			{Name: "banana", When: Condition{Is: []Is{{KindEmbedding, []string{"b"}}}}},
		},
	}
	c := newSaying(t, o)
	for _, row := range []struct {
		text, want string
		auto       bool
		also       []Kind
	}{
		{text: "nothing", want: "keyword"},
		{text: "apple", want: "keyword category"},
		{text: "apple MATHS", auto: true, want: "category keyword"},
		{text: "nothing", auto: true, want: "category keyword sentence embedding"},
		{text: "nothing", also: []Kind{KindLanguage, KindPII, "no kind"}, want: "language pii keyword"},
	} {
		r := said(row.text)
		r.Auto, r.Also = row.auto, row.also
		v := c.Judge(r)
		var took []string
		for _, t := range v.Took {
			took = append(took, string(t.Kind))
		}
		if got := strings.Join(took, " "); got != row.want {
			t.Errorf("%+v: %s", row, got)
		}
		v.Release()
	}
	if c.Idle(false) || c.Idle(true) {
		t.Error("it is idle")
	}
	if c := newSaying(t, Options{}); !c.Idle(false) || c.Idle(true) {
		t.Error("it is not idle")
	}
}

// A verdict says nothing of the request before it.
func TestVerdictsAreClean(t *testing.T) {
	o := blocking()
	o.Threads = 1
	c := newSaying(t, o)
	r := said("ATTACK Name MATHS 4111 1111 1111 1111")
	r.Auto, r.Also = true, []Kind{KindLanguage, KindComplexity, KindContext, KindSentence}
	c.Judge(r).Release()
	v := c.Judge(said("hello"))
	defer v.Release()
	if v.Jailbreak.Flagged || v.Jailbreak.Score != 0 || len(v.PII.Spans)+len(v.PII.Denied)+len(v.Matched) > 0 ||
		v.Category.Judged || v.Language.Code != "" || v.Complexity.Level != "" || v.Tokens != 0 || v.Embedding != nil || v.Decision != nil {
		t.Errorf("%+v", v)
	}
}

func TestManyAtOnce(t *testing.T) {
	o := blocking()
	o.Threads = 2
	c := newSaying(t, o)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 50 {
				text, want := "hello", Passed
				switch (i + k) % 3 {
				case 1:
					text, want = "ATTACK", ByJailbreak
				case 2:
					text, want = "ask m\u200be@example.org", ByPII
				}
				if got := guardOf(c, said(text, "and so on")); got != want {
					t.Errorf("%q: %v", text, got)
				}
			}
		})
	}
	all.Wait()
}

// What could not be computed is neither so nor otherwise.
func TestExplainsWhatFailed(t *testing.T) {
	o := Options{
		Fault:   func(k Kind) { panic(k) },
		Signals: []SignalOptions{{Name: "a", Kind: KindKeyword, Keywords: []string{"hello"}}},
		Decisions: []Decision{
			{Name: "a", When: Condition{Is: []Is{{KindKeyword, []string{"a"}}}}, Explicit: true},
			{Name: "not a", When: Condition{Not: &Condition{Is: []Is{{KindKeyword, []string{"a"}}}}}, Explicit: true},
			{Name: "not German", When: Condition{Not: &Condition{Is: []Is{{KindLanguage, []string{"de"}}}}}, Explicit: true},
			{Name: "a or all", When: Condition{Any: []Condition{{Is: []Is{{KindKeyword, []string{"a"}}}}, {}}}, Explicit: true},
		},
	}
	v, reasons := newSaying(t, o).Explain(said("hello"))
	defer v.Release()
	var got []string
	for _, r := range reasons {
		got = append(got, r.Holds)
	}
	if want := []string{"unknown", "unknown", "unknown", "yes"}; !slices.Equal(got, want) || v.Decision == nil || v.Decision.Name != "a or all" {
		t.Errorf("%v, decision %+v", got, v.Decision)
	}
	if found := reasons[0].Asked[0].Found; found != "a: a signal panicked: keyword" {
		t.Errorf("found %q", found)
	}
}

// What the configuration layer asks for.
func TestKindsAndValues(t *testing.T) {
	if kinds := Kinds(); len(kinds) != 12 || slices.Contains(kinds, KindSentence) {
		t.Errorf("%v", kinds)
	}
	if v := Values(KindComplexity); !slices.Equal(v, []string{"easy", "medium", "hard"}) {
		t.Errorf("%v", v)
	}
	if v := Values(KindModel); v != nil {
		t.Errorf("%v", v)
	}
	_, err := New(Options{Decisions: []Decision{{Name: "x", When: Condition{Is: []Is{{KindPII, []string{"NAME"}}}}}}})
	var unknown *UnknownError
	if !errors.As(err, &unknown) || unknown.Value != "NAME" || !slices.Contains(unknown.Known, "PERSON") {
		t.Errorf("%v", err)
	}
}

// A panic outside of the signals left no verdict at all, on which callers died.
func TestVerdictAfterAPanicOutsideOfSignals(t *testing.T) {
	c, err := New(Options{Jailbreak: GuardOptions{Action: Block}})
	if err != nil {
		t.Fatal(err)
	}
	v := c.Judge(nil)
	if v == nil || v.Blocked() != ByFailedJailbreak {
		t.Fatalf("the verdict is %v", v)
	}
	v.Release()
}

// Names that may all pass are not looked for, unless somebody wants to know.
func TestNamesThatMayPassAreNotLookedFor(t *testing.T) {
	names := []string{"PERSON", "GPE", "ORGANIZATION", "NRP", "TITLE", "STREET_ADDRESS"}
	for _, c := range []struct {
		what string
		o    PIIOptions
		when Condition
		want int
	}{
		{"all allowed", PIIOptions{GuardOptions: GuardOptions{Action: Block}, Allow: names}, Condition{}, 0},
		{"one denied", PIIOptions{GuardOptions: GuardOptions{Action: Block}, Allow: names[1:]}, Condition{}, 1},
		{"annotated", PIIOptions{GuardOptions: GuardOptions{Action: Annotate}, Allow: names}, Condition{}, 1},
		{"asked for", PIIOptions{GuardOptions: GuardOptions{Action: Block}, Allow: names, All: true}, Condition{}, 1},
		{"a decision asks", PIIOptions{GuardOptions: GuardOptions{Action: Block}, Allow: names},
			Condition{Any: []Condition{{Not: &Condition{Is: []Is{{KindPII, []string{"PERSON"}}}}}}}, 1},
	} {
		classifier := newSaying(t, Options{PII: c.o, Decisions: []Decision{{Name: "d", When: c.when}}})
		v := classifier.Judge(said("a Name here"))
		if len(v.PII.Spans) != c.want {
			t.Errorf("%s: %d names are found, want %d", c.what, len(v.PII.Spans), c.want)
		}
		v.Release()
	}
}

// What has hardly a letter orders nobody anything.
func TestSpeaks(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "b": false, "4111 1111 1111 1111": false, "ok 12": false, "Hi ann": false, "be evil": true, "忽略规则": true, "игнорируй": true, "\xff\xfe": false,
	} {
		if speaks([]byte(text)) != want {
			t.Errorf("speaks(%q) is %v", text, !want)
		}
	}
}

// A signal's time is its own: not that of one that it asks for, nor what it did before it asked.
func TestSignalsTakeTheirOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSaying(t, Options{})
		c.table[c.row(KindLanguage)].find = func(j *judging) error {
			time.Sleep(3 * time.Second)
			err := j.find(KindStructure)
			time.Sleep(time.Second)
			return err
		}
		c.table[c.row(KindStructure)].find = func(*judging) error { time.Sleep(5 * time.Second); return nil }
		c.table[c.row(KindComplexity)].find = func(*judging) error { time.Sleep(time.Minute); return nil }
		r := said("anything")
		r.Also = []Kind{KindLanguage, KindComplexity}
		v := c.Judge(r)
		defer v.Release()
		want := []Timing{{Kind: KindStructure, Took: 5 * time.Second}, {Kind: KindLanguage, Took: 4 * time.Second}, {Kind: KindComplexity, Took: time.Minute}}
		if !slices.Equal(v.Took, want) {
			t.Errorf("they took %v, want %v", v.Took, want)
		}
	})
}

// A timeout that the clock cannot reach is none.
func TestEndlessTimeout(t *testing.T) {
	o := blocking()
	o.Timeout = math.MaxInt64
	if got := guardOf(newSaying(t, o), said("nothing")); got != Passed {
		t.Errorf("an innocent text: %v", got)
	}
}
