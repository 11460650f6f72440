// Personal data in every writing that a reader sees through: none may reach a worker.

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// An echo answers every chat with its own text and keeps the last request.
type echo struct {
	*httptest.Server
	calls atomic.Int64
	last  atomic.Pointer[string]
	reply atomic.Pointer[string] // in place of an answer with the call's number
}

func echoWorker(t *testing.T) *echo {
	t.Helper()
	e := &echo{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(r.URL.Path, "/completions") {
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
			return
		}
		b, _ := io.ReadAll(r.Body)
		body := string(b)
		e.last.Store(&body)
		n := e.calls.Add(1)
		if own := e.reply.Load(); own != nil {
			_, _ = io.WriteString(w, *own)
			return
		}
		_, _ = fmt.Fprintf(w, `{"id":"a","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"answer %d"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, n)
	}))
	t.Cleanup(e.Close)
	return e
}

// before serves a Kvasir with this worker and some more configuration.
func (e *echo) before(t *testing.T, more string) *kvasir {
	t.Helper()
	return serve(t, "workers: [{name: w, url: \""+e.URL+"\", engine: openai, models: [m]}]\nmodels: [{name: m, default: true, tokenizer: none}]\ngpu: {mode: \"off\"}\n"+more, "m")
}

// hostileWritings put something between the groups of a number, between its digits, or
// write them in another script.
var hostileWritings = map[string]func(string) string{
	"one group a line": func(s string) string { return strings.ReplaceAll(s, " ", "\n") },
	"dots":             func(s string) string { return strings.ReplaceAll(s, " ", ".") },
	"commas":           func(s string) string { return strings.ReplaceAll(s, " ", ", ") },
	"slashes":          func(s string) string { return strings.ReplaceAll(s, " ", "/") },
	"bold":             func(s string) string { return "**" + strings.ReplaceAll(s, " ", "** **") + "**" },
	"italic":           func(s string) string { return "_" + strings.ReplaceAll(s, " ", "_ _") + "_" },
	"code":             func(s string) string { return strings.ReplaceAll(s, " ", "`") },
	"tags":             func(s string) string { return "<b>" + strings.ReplaceAll(s, " ", "</b><i>") + "</i>" },
	"&nbsp;":           func(s string) string { return strings.ReplaceAll(s, " ", "&nbsp;") },
	"references":       strings.NewReplacer("1", "&#49;", "4", "&#x34;").Replace,
	"accents":          func(s string) string { return strings.Join(strings.Split(s, ""), "\u0301") },
	"blanks":           func(s string) string { return strings.Join(strings.Split(s, ""), " ") },
	"thin spaces":      func(s string) string { return strings.ReplaceAll(s, " ", "\u2009") },
	"zero width":       func(s string) string { return strings.Join(strings.Split(s, ""), "\u200b") },
	"tag characters":   func(s string) string { return strings.Join(strings.Split(s, ""), "\U000e0041") },
	"full width":       func(s string) string { return strings.Map(shifted(0xff10), s) },
	"Arabic":           func(s string) string { return strings.Map(shifted(0x660), s) },
	"Balinese":         func(s string) string { return strings.Map(shifted(0x1b50), s) },
	"footnotes":        func(s string) string { return strings.ReplaceAll(s, " ", "[^n]") },
	"forum tags":       func(s string) string { return "[b]" + strings.ReplaceAll(s, " ", "[/b] [b]") + "[/b]" },
	"long tags": func(s string) string {
		return strings.ReplaceAll(s, " ", `<i title="`+strings.Repeat("a>", 100)+`"> </i>`)
	},
	"brackets":          func(s string) string { return "(" + strings.ReplaceAll(s, " ", ")(") + ")" },
	"letters of a list": func(s string) string { return "\na) " + strings.ReplaceAll(s, " ", "\nb) ") + "\n" },
	"quoted lines":      func(s string) string { return "\n> " + strings.ReplaceAll(s, " ", "\n> ") + "\n" },
	"signs":             func(s string) string { return strings.ReplaceAll(s, " ", "➖") },
	"emoji":             func(s string) string { return strings.ReplaceAll(s, " ", "😀") },
	"braced escapes":    func(s string) string { return strings.ReplaceAll(s, " ", `\u{2d}`) },
	"octal escapes":     func(s string) string { return strings.ReplaceAll(s, " ", `\055`) },
	"per cent twice":    func(s string) string { return strings.ReplaceAll(s, " ", "%2520") },
	"per cent of UTF-8": func(s string) string { return strings.ReplaceAll(s, " ", "%E2%80%8B") },
	"a row of a table":  func(s string) string { return "\n| " + strings.ReplaceAll(s, " ", " | ") + " |\n|---|---|\n" },
	"turned round": func(s string) string {
		r := []rune(s)
		slices.Reverse(r)
		return "\u202e" + string(r) + "\u202c"
	},
	"stars between all": func(s string) string { return strings.Join(strings.Split(s, ""), "**") },
}

func shifted(zero rune) func(rune) rune {
	return func(r rune) rune {
		if r >= '0' && r <= '9' {
			return zero + r - '0'
		}
		return r
	}
}

var hostileValues = map[string]string{
	"card": "Charge my card %s please", "iban": "Pay to IBAN %s please", "ssn": "My social security number is %s as you know",
}

var hostileNumbers = map[string]string{"card": "4111 1111 1111 1111", "iban": "DE89 3704 0044 0532 0130 00", "ssn": "536 22 1234"}

func chatOf(texts ...string) string {
	var messages []map[string]any
	for _, text := range texts {
		messages = append(messages, map[string]any{"role": "user", "content": text})
	}
	b, _ := json.Marshal(map[string]any{"model": "m", "messages": messages})
	return string(b)
}

func TestHostileValuesPastTheGuard(t *testing.T) {
	t.Parallel()
	w := echoWorker(t)
	k := w.before(t, "cache: {store: \"off\"}\n")
	for kind, sentence := range hostileValues {
		for name, write := range hostileWritings {
			if kind == "iban" && (name == "blanks") {
				continue // sixteen single characters are no IBAN to anybody
			}
			r := post(t, k.url+"/v1/chat/completions", chatOf(fmt.Sprintf(sentence, write(hostileNumbers[kind]))))
			if r.header.Get("x-vsr-pii-violation") != "true" {
				t.Errorf("%s, %s: passed: %s", kind, name, r.body)
			}
		}
	}
	if n := w.calls.Load(); n > 0 {
		t.Errorf("the worker was asked %d times", n)
	}
	for _, texts := range [][]string{{"my card is 4111 1111", "1111 1111 thanks"}, {"4111", "1111", "1111", "1111"}, {"IBAN DE89 3704 0044", "0532 0130 00"},
		{"card 4111 1111" + strings.Repeat(" ", 50), "1111 1111"}, {"card 4111 1111", strings.Repeat("\n", 60) + "1111 1111"}} {
		if r := post(t, k.url+"/v1/chat/completions", chatOf(texts...)); r.header.Get("x-vsr-pii-violation") != "true" {
			t.Errorf("%q: passed", texts)
		}
	}
}

// Members of a body that a template writes one behind the other.
func TestHostileValuesCutOverMembers(t *testing.T) {
	t.Parallel()
	w := echoWorker(t)
	k := w.before(t, "cache: {store: \"off\"}\n")
	for _, ask := range [][2]string{
		{"/v1/messages", `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"my card is 4111"},{"type":"text","text":"1111"}],"messages":[{"role":"user","content":"1111 1111 thanks"}]}`},
		{"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"1111 1111 thanks"}],"system":[{"type":"text","text":"my card is 4111"},{"type":"text","text":"1111"}]}`},
		{"/v1/responses", `{"model":"m","previous_input_messages":["my card is 4111 1111"],"input":"1111 1111 thanks"}`},
		{"/v1/responses", `{"model":"m","input":"1111 1111 thanks","previous_input_messages":["my card is 4111 1111"]}`},
		{"/v1/responses", `{"model":"m","previous_input_messages":[{"role":"user","content":"my card is 4111 1111"}],"input":[{"role":"user","content":"1111 1111 thanks"}]}`},
		{"/v1/completions", `{"model":"m","prompt":"my card is 4111 1111","suffix":"1111 1111 thanks"}`},
		{"/v1/completions", `{"model":"m","suffix":"1111 1111 thanks","prompt":"my card is 4111 1111"}`},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"my card is 4111"},{"type":"text","text":"1111"}]},{"role":"user","content":"1111 1111"}]}`},
	} {
		if r := post(t, k.url+ask[0], ask[1]); r.header.Get("x-vsr-pii-violation") != "true" {
			t.Errorf("%s: passed: %d %s", ask[1], r.status, r.body)
		}
	}
	if n := w.calls.Load(); n > 0 {
		t.Errorf("the worker was asked %d times", n)
	}
}

func TestHostileValuesPastRedaction(t *testing.T) {
	t.Parallel()
	w := echoWorker(t)
	k := w.before(t, "cache: {store: \"off\"}\nclassify: {pii: {action: redact}}\n")
	digits := func(s string) string {
		for zero := range []rune{0xff10, 0x660, 0x1b50} {
			s = strings.Map(func(r rune) rune {
				if z := []rune{0xff10, 0x660, 0x1b50}[zero]; r >= z && r <= z+9 {
					return '0' + r - z
				}
				return r
			}, s)
		}
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, s)
	}
	sent := func(texts ...string) string {
		r := post(t, k.url+"/v1/chat/completions", chatOf(texts...))
		if r.status != 200 || w.last.Load() == nil {
			t.Fatalf("%q: %d %s", texts, r.status, r.body)
		}
		var body struct{ Messages []struct{ Content string } }
		if err := json.Unmarshal([]byte(*w.last.Load()), &body); err != nil {
			t.Fatal(err)
		}
		all := ""
		for _, m := range body.Messages {
			all += m.Content + "\n"
		}
		return all
	}
	for kind, sentence := range hostileValues {
		for name, write := range hostileWritings {
			if kind == "iban" && name == "blanks" {
				continue
			}
			if got := sent(fmt.Sprintf(sentence, write(hostileNumbers[kind]))); digits(got) != "" || strings.Contains(got, "&#") {
				t.Errorf("%s, %s: the worker was sent %q", kind, name, got)
			}
		}
	}
	if got := sent("my card is 4111 1111", "1111 1111 thanks"); digits(strings.Replace(got, "_2]", "]", 1)) != "" || strings.Count(got, "[CREDIT_CARD") != 2 {
		t.Errorf("over two messages: the worker was sent %q", got)
	}
}

func TestHostileValuesSpareTheInnocent(t *testing.T) {
	t.Parallel()
	w := echoWorker(t)
	k := w.before(t, "cache: {store: \"off\"}\nclassify: {jailbreak: {action: annotate}}\n")
	for _, text := range []string{
		"The years 2001, 2003, 2005 and 2007 were dry.", "Sort these: 4096, 8192, 5120, 6144", "nums = [4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]",
		"| a | 4111 | 1111 | 1111 | 1111 |\n| b | 4222 | 2222 | 2222 | 2222 |", "sensor,4111,1111,1111,1111\nsensor,5500,0000,0000,0004", "4111 * 1111 * 1111 * 1111 = ?",
	} {
		if r := post(t, k.url+"/v1/chat/completions", chatOf(text)); r.header.Get("x-vsr-pii-violation") != "" || r.status != 200 {
			t.Errorf("%q: %d %s %s", text, r.status, r.header.Get("x-vsr-pii-types"), r.body)
		}
	}
}
