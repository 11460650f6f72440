// Phone numbers against libphonenumber's: its country codes, and an example of each region in
// both of its forms.

package pii

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// An example is one number of a region, as libphonenumber writes it.
type example struct{ region, kind, international, national string }

// examples reads testdata/phones.tsv, which scripts/phones makes.
func examples(t *testing.T) (list []example, codes []string) {
	t.Helper()
	data, err := os.ReadFile("testdata/phones.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case fields[0] == "# codes":
			codes = strings.Fields(fields[1])
		case len(fields) == 4:
			list = append(list, example{fields[0], fields[1], fields[2], fields[3]})
		}
	}
	if len(list) < 480 || len(codes) < 200 {
		t.Fatalf("%d examples, %d codes", len(list), len(codes))
	}
	return list, codes
}

// The codes that begin a number are those that are assigned, and no others.
func TestCountryCodes(t *testing.T) {
	_, codes := examples(t)
	for code := range 1000 {
		text := strconv.Itoa(code)
		got := countryCode([]byte(text + "4567890")[:max(len(text), 4)])
		want := 0
		for n := 1; n <= len(text); n++ {
			if slices.Contains(codes, text[:n]) {
				want = n
				break
			}
		}
		if code > 0 && got != want && (got <= len(text) || want > 0) {
			t.Errorf("%s begins with a code of %d digits, want %d", text, got, want)
		}
	}
}

// foundPhone reports whether the whole of a value is found as a phone number.
func foundPhone(before, value, after string) bool {
	text := before + value + after
	for _, s := range Find(nil, []byte(text)) {
		if s.Type == PhoneNumber && int(s.Start) <= len(before) && int(s.End) >= len(before)+len(value) {
			return true
		}
	}
	return false
}

// A national form that no word announces is found only where it looks like a phone number and
// like little else, which is about half of them: "9469 9966" may be anything. With a country code
// all but the shortest are found.
func TestExamplePhones(t *testing.T) {
	list, _ := examples(t)
	international, national, announced, pairs := 0, 0, 0, 0
	for _, e := range list {
		if foundPhone("", e.international, "") {
			international++
		}
		if e.kind == "world" {
			continue
		}
		pairs++
		if foundPhone("", e.national, "") {
			national++
		}
		if foundPhone("Phone: ", e.national, "") {
			announced++
		}
	}
	if international < 494 || national < 260 || announced < 465 {
		t.Error("fewer are found than were: 494, 260 and 465")
	}
	t.Logf("of %d in international form %d are found; of %d in national form %d alone, %d after a word", len(list), international, pairs, national, announced)
}
