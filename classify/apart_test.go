// Values that are written apart, dressed up or cut in two: what the guard and
// redaction must see.

package classify

import (
	"slices"
	"strings"
	"testing"
)

// guarded returns a judge of personal data.
func guarded(t testing.TB) *Classifier {
	t.Helper()
	c, err := New(Options{PII: PIIOptions{GuardOptions: GuardOptions{Action: Redact}}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// withoutValues are the texts with what may not pass taken out, as redaction does, and the
// types of it.
func withoutValues(c *Classifier, r *Request) (texts []string, types string) {
	v := c.Judge(r)
	defer v.Release()
	for i := range r.Texts {
		rest, at := "", int32(0)
		for _, e := range v.PII.Spans {
			if e.Text == i && e.Start >= at {
				rest += string(r.Texts[i].Bytes[at:e.Start]) + "[]"
				at = e.End
			}
		}
		texts = append(texts, rest+string(r.Texts[i].Bytes[at:]))
	}
	return texts, strings.Join(v.PII.Denied, ",")
}

func user(texts ...string) *Request {
	r := &Request{}
	for i, text := range texts {
		r.Texts = append(r.Texts, Text{[]byte(text), User, int32(i)})
	}
	return r
}

// every puts something between any two characters.
func every(with string) func(string) string {
	return func(s string) string { return strings.Join(strings.Split(s, ""), with) }
}

// digitsAs writes the digits of another script.
func digitsAs(zero rune) func(string) string {
	return func(s string) string {
		return strings.Map(func(r rune) rune {
			if '0' <= r && r <= '9' {
				return zero + r - '0'
			}
			return r
		}, s)
	}
}

func spacedBy(with string) func(string) string {
	return func(s string) string { return strings.ReplaceAll(s, " ", with) }
}

// around puts something around each group.
func around(open, end string) func(string) string {
	return func(s string) string { return open + strings.ReplaceAll(s, " ", end+" "+open) + end }
}

// listed makes an item of each group, with its number or letter before it.
func listed(mark func(i int) string) func(string) string {
	return func(s string) string {
		groups := strings.Split(s, " ")
		for i := range groups {
			groups[i] = mark(i) + groups[i]
		}
		return "\n" + strings.Join(groups, "\n") + "\n"
	}
}

// raised writes the digits of each group raised but for the first character; a lone
// one is a power.
func raised(s string) string {
	groups := strings.Split(s, " ")
	for i, group := range groups {
		if len(group) > 2 {
			groups[i] = group[:1] + strings.Map(func(r rune) rune {
				if r >= '0' && r <= '9' {
					return []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")[r-'0']
				}
				return r
			}, group[1:])
		}
	}
	return strings.Join(groups, " ")
}

// backwards turns a text round for a reader, and so not at all.
func backwards(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return "\u202e" + string(r) + "\u202c"
}

var carriers = []struct {
	name  string
	write func(string) string
}{
	{"plain", spacedBy(" ")}, {"a group a line", spacedBy("\n")}, {"lines of Windows", spacedBy("\r\n")}, {"lines with dashes", spacedBy("\n- ")}, {"blank lines", spacedBy("\n\n")},
	{"commas", spacedBy(",")}, {"commas and spaces", spacedBy(", ")}, {"semicolons", spacedBy("; ")}, {"dots", spacedBy(".")}, {"dots and spaces", spacedBy(" . ")}, {"two dots", spacedBy("..")},
	{"slashes", spacedBy("/")}, {"two slashes", spacedBy(" // ")}, {"bars", spacedBy(" | ")}, {"underscores", spacedBy("_")}, {"many spaces", spacedBy("      ")}, {"tabs", spacedBy("\t")},
	{"stars", spacedBy("**")}, {"bold groups", around("**", "**")}, {"italic groups", around("_", "_")}, {"starred groups", around("*", "*")}, {"code groups", around("`", "`")}, {"struck groups", around("~~", "~~")},
	{"tagged groups", around("<b>", "</b>")}, {"tags with attributes", around(`<span class="x">`, "</span>")}, {"breaks", spacedBy("<br/>")}, {"comments", spacedBy("<!-- x -->")},
	{"&nbsp;", spacedBy("&nbsp;")}, {"&#160;", spacedBy("&#160;")}, {"&#xA0;", spacedBy("&#xa0;")}, {"&zwnj;", spacedBy("&zwnj;")}, {"&ensp;", spacedBy("&ensp;")}, {"TeX", spacedBy(`\,`)}, {"backslashes", spacedBy(`\-`)},
	{"no-break spaces", spacedBy("\u00a0")}, {"thin spaces", spacedBy("\u2009")}, {"ideographic spaces", spacedBy("\u3000")}, {"figure spaces", spacedBy("\u2007")}, {"en dashes", spacedBy("–")}, {"middle dots", spacedBy("·")}, {"bullets", spacedBy(" • ")}, {"a line of dots", spacedBy(strings.Repeat(".", 40))}, {"per cent", spacedBy("%20")}, {"plus of forms", spacedBy("+")},
	{"links", around("[", "](https://example.com/a)")}, {"emoji", spacedBy(" 🙂 ")},
	{"emoji alone", spacedBy("😀")}, {"a sign", spacedBy("➖")}, {"brackets that meet", func(s string) string { return "(" + strings.ReplaceAll(s, " ", ")(") + ")" }},
	{"footnotes", func(s string) string { return strings.ReplaceAll(s, " ", "[^n]") + "[^n]" }}, {"named links", around("[", "][n]")}, {"pictures", around("![", "](https://example.com/a.png)")},
	{"tags of forums", around("[b]", "[/b]")}, {"tags of forums with values", around("[color=red]", "[/color]")}, {"a long tag", around(`<span style="`+strings.Repeat("a", 300)+`">`, "</span>")}, {"a tag with a sign", around(`<a title="a>b">`, "</a>")}, {"a long comment", spacedBy("<!--" + strings.Repeat("-", 300) + " x -->")},
	{"numbered with letters", listed(func(i int) string { return string(rune('a'+i)) + ") " })}, {"capitals with points", listed(func(i int) string { return string(rune('A'+i)) + ". " })}, {"letters in brackets", listed(func(i int) string { return "(" + string(rune('a'+i)) + ") " })}, {"Roman", listed(func(i int) string { return []string{"i", "ii", "iii", "iv", "v", "vi"}[i] + ". " })},
	{"stars of a list", listed(func(int) string { return "* " })}, {"quoted lines", listed(func(int) string { return "> " })}, {"bullets of a list", listed(func(int) string { return "• " })}, {"headings", listed(func(int) string { return "# " })}, {"tasks", listed(func(int) string { return "- [ ] " })},
	{"cells", func(s string) string { return "<td>" + strings.ReplaceAll(s, " ", "</td><td>") + "</td>" }}, {"a row", func(s string) string { return "\n| " + strings.ReplaceAll(s, " ", " | ") + " |\n|---|---|\n" }},
	{"\\u{2d}", spacedBy(`\u{2d}`)}, {"\\x{2d}", spacedBy(`\x{2d}`)}, {"\\U0000002d", spacedBy(`\U0000002d`)}, {"octal", spacedBy(`\055`)}, {"bytes of UTF-8", spacedBy(`\xe2\x80\x8b`)}, {"a name", spacedBy(`\N{HYPHEN}`)},
	{"%E2%80%8B", spacedBy("%E2%80%8B")}, {"%C2%A0", spacedBy("%C2%A0")}, {"%0A", spacedBy("%0A")}, {"%2520", spacedBy("%2520")}, {"%252520", spacedBy("%252520")}, {"of mails", spacedBy("=20")},
	{"TeX texts", around(`\text{`, "}")}, {"TeX spaces", spacedBy(`\quad `)},
	{"turned round", backwards}, {"raised", raised},
	{"zero width", every("\u200b")}, {"joiners", every("\u200d")}, {"soft hyphens", every("\u00ad")}, {"word joiners", every("\u2060")}, {"tag characters", every("\U000e0041")}, {"variation selectors", every("\ufe0f")}, {"direction", every("\u200e")},
	{"acute accents", every("\u0301")}, {"strokes", every("\u0336")}, {"rings", every("\u20dd")},
	{"full width", digitsAs('０')}, {"Arabic", digitsAs('٠')}, {"Persian", digitsAs('۰')}, {"Hindi", digitsAs('०')}, {"Bengali", digitsAs('০')}, {"Thai", digitsAs('๐')}, {"Khmer", digitsAs('០')}, {"Balinese", digitsAs('᭐')}, {"Osmanya", digitsAs('𐒠')}, {"bold digits", digitsAs('𝟎')},
	{"spaces between all", every(" ")}, {"dots between all", every(".")}, {"stars between all", every("**")}, {"dashes between all", every("-")}, {"lines between all", every("\n")}, {"commas between all", every(", ")}, {"tags between all", every("<i></i>")},
}

func TestWrittenApart(t *testing.T) {
	c := guarded(t)
	for _, value := range []struct {
		kind, before, value string
		not                 string // carriers that make another value of it
	}{
		{"CREDIT_CARD", "Charge my card ", "4111 1111 1111 1111", ""},
		{"CREDIT_CARD", "my card: ", "3782 822463 10005", ""},
		{"US_SSN", "My SSN: ", "536 22 1234", ""},
		{"IBAN_CODE", "pay to IBAN ", "DE89 3704 0044 0532 0130 00", ""},
		{"IN_AADHAAR", "my Aadhaar is ", "2341 2341 2346", ""},
		{"UK_NHS", "NHS number ", "943 476 5919", ""},
		{"CN_RESIDENT_ID", "身份证 ", "110105 19491231 0021", "skip"},
	} {
		if value.not == "skip" {
			continue
		}
		for _, carrier := range carriers {
			texts, types := withoutValues(c, user(value.before+carrier.write(value.value)+" please"))
			if !strings.Contains(types, value.kind) {
				t.Errorf("%s, %s: %q is found in %q", value.kind, carrier.name, types, carrier.write(value.value))
				continue
			}
			if strings.ContainsAny(texts[0], "0123456789") {
				t.Errorf("%s, %s: %q is left", value.kind, carrier.name, texts[0])
			}
		}
	}
}

func TestCutInTwo(t *testing.T) {
	c := guarded(t)
	for _, texts := range [][]string{
		{"my card is 4111 1111", "1111 1111 thanks"}, {"4111", "1111", "1111", "1111"}, {"my card: 4111-1111-11", "11-1111"}, {"card 411111111111", "1111"},
		{"IBAN DE89 3704 0044", "0532 0130 00"}, {"my SSN: 536-22", "-1234"},
		{"card 4111 1111" + strings.Repeat(" ", 50), "1111 1111"}, {"card 4111 1111", strings.Repeat("\n", 60) + "1111 1111"}, {"card 4111 1111" + strings.Repeat("\n", 500), strings.Repeat("\t ", 500) + "1111 1111"},
		{"card 4111 1111 " + strings.Repeat(".", 300), strings.Repeat("- ", 200) + "1111 1111"}, {"card ４１１１ １１１１", "１１１１ １１１１"},
	} {
		for _, split := range []string{"messages", "parts", "roles", "system", "instructions", "system behind", "instructions behind"} {
			split, behind := strings.CutSuffix(split, " behind")
			r := user(texts...)
			for i := range r.Texts {
				switch {
				case split == "parts":
					r.Texts[i].Message = 0
				case split == "system" && i == 0: // in no message
					r.Texts[i].Message, r.Texts[i].Role = -1, System
				case split == "instructions" && len(texts) == 2: // and the input is none either
					r.Texts[i].Message, r.Texts[i].Role = -1, []Role{System, User}[i]
				case split == "roles" && i%2 == 1:
					r.Texts[i].Role = Assistant
				}
			}
			if behind && r.Texts[0].Role == System { // as the members stand in the body, not as a template writes them
				r.Texts = append(r.Texts[1:], r.Texts[0])
			}
			rest, types := withoutValues(c, r)
			if types == "" || strings.ContainsAny(strings.Join(rest, ""), "0123456789") {
				t.Errorf("%s: %q: found %q, left %q", split, texts, types, rest)
			}
		}
	}
}

// Texts that stand in no message, and parts of one that the next message goes on from.
func TestCutOverMembers(t *testing.T) {
	c := guarded(t)
	for name, texts := range map[string][]Text{
		"two system texts and a message": {{[]byte("my card is 4111"), System, -1}, {[]byte("1111"), System, -1}, {[]byte("1111 1111 thanks"), User, 0}},
		"the message first":              {{[]byte("1111 1111 thanks"), User, 0}, {[]byte("my card is 4111"), System, -1}, {[]byte("1111"), System, -1}},
		"parts and a message":            {{[]byte("my card is 4111"), User, 0}, {[]byte("1111"), User, 0}, {[]byte("1111 1111 thanks"), User, 1}},
		"an earlier input":               {{[]byte("my card is 4111 1111"), User, -1}, {[]byte("1111 1111 thanks"), User, -1}},
		"the input first":                {{[]byte("1111 1111 thanks"), User, -1}, {[]byte("my card is 4111 1111"), User, -1}},
		"no word":                        {{[]byte("4111 1111"), User, -1}, {[]byte("1111 1111"), User, -1}},
		"an earlier input and items":     {{[]byte("1111 1111"), User, 0}, {[]byte("4111 1111"), User, -1}},
		"others between":                 {{[]byte("card 4111 1111"), System, -1}, {[]byte("x"), User, -1}, {[]byte("1111 1111"), User, 0}},
		"others behind":                  {{[]byte("card 4111 1111"), System, -1}, {[]byte("1111 1111"), User, -1}, {[]byte("x"), User, -1}},
		"others before":                  {{[]byte("card 4111 1111"), System, -1}, {[]byte("x"), User, -1}, {[]byte("1111 1111"), User, -1}},
	} {
		if rest, types := withoutValues(c, &Request{Texts: texts}); types != "CREDIT_CARD" || strings.Contains(strings.Join(rest, " "), "1") {
			t.Errorf("%s: found %q, left %q", name, types, rest)
		}
	}
	for _, texts := range [][]string{{"12345674", "23456789"}, {"41111111", "11111111"}, {"4111", "1111", "1111", "1111"}} { // prompts of their own: numbers to embed
		r := user(texts...)
		for i := range r.Texts {
			r.Texts[i].Message = -1
		}
		if _, types := withoutValues(c, r); types != "" {
			t.Errorf("%q: found %q", texts, types)
		}
	}
}

// The arguments of a call are JSON in a text: a model is shown what its escapes stand for.
func TestEscapedValues(t *testing.T) {
	c := guarded(t)
	for _, text := range []string{
		`{"card":"4111\n1111\n1111\n1111"}`, `{"card":"4111\r\n1111\r\n1111\r\n1111"}`, `{"card":"4111\t1111\t1111\t1111"}`, `{"card":"\u0034\u0031\u0031\u0031 1111 1111 1111"}`,
		`{"card":"4111\u00201111\u00201111\u00201111"}`, `{"n":"411111111111111\u0031"}`,
		`{"card":"4111\u002d1111\u002d1111\u002d1111"}`, `{"card":"4111\x201111\x201111\x201111"}`, `{"card":"4111\f1111\f1111\f1111"}`, `{"card":"4111\b1111\b1111\b1111"}`, `{"card":"4111\/1111\/1111\/1111"}`,
		`"{\"card\":\"4111\\n1111\\n1111\\n1111\"}"`, `"{\"card\":\"\\u0034111 1111 1111 1111\"}"`, `"{\\\"card\\\":\\\"4111\\\\n1111\\\\n1111\\\\n1111\\\"}"`,
		`{"card":"\uff14\uff11\uff11\uff11 1111 1111 1111"}`, `{"card":"\u0664\u0661\u0661\u0661 1111 1111 1111"}`, `{"card":"4111\u00a01111\u20111111\u00a01111"}`,
	} {
		if rest, types := withoutValues(c, user(text)); !strings.Contains(types, "CREDIT_CARD") || strings.Contains(rest[0], "1111") {
			t.Errorf("%q: found %q, left %q", text, types, rest)
		}
	}
}

// An address is one however its sign is written, and in what a tool says.
func TestEscapedAddresses(t *testing.T) {
	c := guarded(t)
	for _, text := range []string{`{"to":"jane.roe\u0040example.com"}`, `{"to":"jane.roe\x40example.com"}`, `"{\"to\":\"jane.roe\\u0040example.com\"}"`, "mailto:jane.roe%40example.com"} {
		r := user(text)
		r.Texts[0].Role = Tool
		if rest, types := withoutValues(c, r); !strings.Contains(types, "EMAIL") || strings.Contains(rest[0], "roe") {
			t.Errorf("%q: found %q, left %q", text, types, rest)
		}
	}
}

// Cards that no word announces.
func TestWrittenInLines(t *testing.T) {
	c := guarded(t)
	for _, text := range []string{
		strings.Join(strings.Split("4111111111111111", ""), "\n"), "look:\n" + strings.Join(strings.Split("378282246310005", ""), "\r\n") + "\nthanks",
		"a) 4111\nb) 1111\nc) 1111\nd) 1111", "A. 4111\nB. 1111\nC. 1111\nD. 1111\n", "> 4111\n> 1111\n> 1111\n> 1111", "- [ ] 4111\n- [ ] 1111\n- [x] 1111\n- [ ] 1111",
		"| 4111 | 1111 | 1111 | 1111 |\n|---|---|---|---|", "Look:\n\n| 4111 | 1111 | 1111 | 1111 |\n\nThanks", "<td>4111</td><td>1111</td><td>1111</td><td>1111</td>", "<tr>4111</tr>\n<tr>1111</tr>\n<tr>1111</tr>\n<tr>1111</tr>",
		"4111111111111111.00", "4111111111111111.0,17", "4¹¹¹ ¹¹¹¹ ¹¹¹¹ ¹¹¹¹", "\u202e1111 1111 1111 1114", "4111😀1111😀1111😀1111", "(4111)(1111)(1111)(1111)", "4111[^1]1111[^2]1111[^3]1111",
		"https://x.example/pay?n=4111+1111+1111+1111", "https://x.example/pay?n=4111%201111%201111%201111", "https://x.example/pay?n=4111%252D1111%252D1111%252D1111&y=1",
		"1. 4111\n2. 1111\n3. 1111\n4. 1111", "1) 4242\n2) 4242\n3) 4242\n4) 4242", "My card:\n1. 4111\n2. 1111\n3. 1111\n4. 1111\nThanks",
	} {
		if rest, types := withoutValues(c, user(text)); !strings.Contains(types, "CREDIT_CARD") || strings.Contains(rest[0], "111") || strings.Contains(rest[0], "42") {
			t.Errorf("%q: found %q, left %q", text, types, rest)
		}
	}
}

// Numbers that are none of anybody's.
func TestNumbersPass(t *testing.T) {
	c := guarded(t)
	for _, text := range []string{
		"The years 2001, 2003, 2005 and 2007, or 1998\n1999\n2000\n2001", "sizes: 4096, 8192, 5120, 6144", "ports 5432, 6379, 8080, 9090, 4222",
		"4111,1111,1111,1111,4111,5500\n4111,1111,1111,1111,17,18", "nums = [4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]", "4111 * 1111 * 1111 * 1111", "4111 + 1111 + 1111 + 1111 = 7444",
		"| a | 4111 | 1111 | 1111 | 1111 |\n| b | 4222 | 2222 | 2222 | 2222 |", "Alice,4111,1111,1111,1111\nBob,5500,0000,0000,0004", "<tr><td>x</td><td>4111</td><td>1111</td><td>1111</td><td>1111</td></tr>",
		"0.4111 0.1111 0.1111 0.1111", "4111.1, 1111.2, 1111.3, 1111.4", "3.14159265358979323846", "5 3 4 6 7 8 9 1 2\n6 7 2 1 9 5 3 4 8\n1 9 8 3 4 2 5 6 7",
		"4.1.1.1, 1.1.1.1 and 10.0.0.1", "2**10 ** 4", "a_4111_1111_1111_1111", "12:30:45.123 4111 us", "1. 4\n2. 1\n3. 1\n4. 1\n5. 1\n6. 1\n7. 1",
		"Answers:\n1. 4\n2. 1\n3. 1\n4. 1\n5. 1\n6. 1\n7. 1\n8. 1\n9. 1\n10. 1\n11. 1\n12. 1\n13. 1\n14. 1\n15. 1\n16. 1\n", "| Q1 | Q2 | Q3 | Q4 |\n|---|---|---|---|\n| 4111 | 1111 | 1111 | 1111 |", "| 4111 | 1111 | 1111 | 1111 |\n| 4222 | 2222 | 2222 | 2222 |",
		"<tr><th>Q1</th><th>Q2</th></tr>\n<tr><td>4111</td><td>1111</td><td>1111</td><td>1111</td></tr>", "total=4111+1111+1111+1111", "https://x.example/a?q=1+1+1", "item 411111111111 1111", "- 4111 rows\n- 1111 more\n- 1111 less\n- 1111 again",
		"4111111111111111.5", "10¹² and 10¹⁵ stars", "18%12 of 5%34",
	} {
		if _, types := withoutValues(c, user(text)); strings.Contains(types, "CREDIT_CARD") || strings.Contains(types, "IBAN") || strings.Contains(types, "SSN") || strings.Contains(types, "CN_RES") {
			t.Errorf("%q: %s", text, types)
		}
	}
}
