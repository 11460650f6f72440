// Exact-span F1 on the rows under $KVASIR_DATA/pii, skipped without it:
//
//	KVASIR_DATA=../shared/data go test ./classify/pii -run Measure -v

package pii

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"unicode/utf8"

	"kvasir/jsonltest"
)

var misses = flag.String("misses", "", "print the misses of this type, or of all")

// marked is a row of the shared data: offsets in code points.
type marked struct {
	Text   string
	Source string
	Spans  []struct {
		Start, End int
		Norm       string
	}
}

// norms are the names of the shared data for structured types.
var norms = map[string]Type{
	"EMAIL": EmailAddress, "PHONE": PhoneNumber, "CREDIT_CARD": CreditCard, "US_SSN": USSSN, "IBAN": IBAN, "IP": IPAddress,
	"DOMAIN_NAME": DomainName, "ZIP_CODE": ZipCode, "AGE": Age, "DATE_TIME": DateTime, "US_DRIVER_LICENSE": DriverLicense,
	"DRIVER_LICENSE": DriverLicense, "DRIVER_LICENSE_NUM": DriverLicense, "LICENSE": DriverLicense, "PASSPORT": Passport,
	"PASSPORT_NUM": Passport, "PASSWORD": Password, "AADHAR": Aadhaar, "ROUTING_NUMBER": BankNumber, "ACCOUNT_NUMBER": BankNumber,
	"BANK_ACCOUNT": BankNumber, "PATIENT_ID": MRN, "MEDICAL_RECORD": MRN,
}

// core are the types by which every version of the rules was judged on these rows.
var core = map[Type]bool{EmailAddress: true, PhoneNumber: true, CreditCard: true, USSSN: true, IBAN: true, IPAddress: true}

// tally counts spans found and marked.
type tally struct{ hit, found, marked int }

func (t tally) f1() float64 {
	if t.found+t.marked == 0 {
		return 0
	}
	return 200 * float64(t.hit) / float64(t.found+t.marked)
}

func (t *tally) add(o tally) {
	t.hit, t.found, t.marked = t.hit+o.hit, t.found+o.found, t.marked+o.marked
}

func TestMeasure(t *testing.T) {
	dir := os.Getenv("KVASIR_DATA")
	if dir == "" {
		t.Skip("KVASIR_DATA is not set")
	}
	counts := map[string]map[Type]*tally{}
	for _, part := range []string{"train", "dev"} {
		for _, row := range jsonltest.Read[marked](t, filepath.Join(dir, "pii", part+".jsonl")) {
			source := part + "/" + row.Source
			if counts[source] == nil {
				counts[source] = map[Type]*tally{}
			}
			judge(row, counts[source])
		}
	}
	sources := make([]string, 0, len(counts))
	for source := range counts {
		sources = append(sources, source)
	}
	sort.Strings(sources)
	var narrow, wide tally
	for _, source := range sources {
		for typ := Type(1); typ < types; typ++ {
			c := counts[source][typ]
			if c == nil {
				continue
			}
			line := fmt.Sprintf("%-24s %-18s marked %4d found %4d hit %4d F1 %5.1f", source, typ, c.marked, c.found, c.hit, c.f1())
			if c.marked == 0 {
				line += "  (not marked in this source)"
			} else if strings.Contains(source, "presidio") {
				if core[typ] {
					narrow.add(*c)
				}
				wide.add(*c)
			}
			t.Log(line)
		}
	}
	t.Logf("presidio, e-mail to IP: F1 %.1f (%+v); all structured types: F1 %.1f (%+v)", narrow.f1(), narrow, wide.f1(), wide)
	if narrow.f1() < 96 {
		t.Errorf("cannot accept F1 %.1f on structured types, below 96", narrow.f1())
	}
}

// judge counts the finds in a row against its marks.
func judge(row marked, counts map[Type]*tally) {
	at := func(typ Type) *tally {
		if counts[typ] == nil {
			counts[typ] = new(tally)
		}
		return counts[typ]
	}
	type place struct {
		start, end int
		typ        Type
	}
	want := map[place]bool{}
	for _, s := range row.Spans {
		if typ := norms[s.Norm]; typ != 0 {
			want[place{s.Start, s.End, typ}] = true
			at(typ).marked++
		}
	}
	points := []rune(row.Text)
	report := func(sign string, p place) {
		if *misses == "all" || *misses == p.typ.String() {
			from, to := max(0, p.start-40), min(len(points), p.end+25)
			fmt.Printf("%s %s %s: %q [%s] %q\n", sign, row.Source, p.typ, string(points[from:p.start]), string(points[p.start:p.end]), string(points[p.end:to]))
		}
	}
	for _, s := range Find(nil, []byte(row.Text)) {
		p := place{utf8.RuneCountInString(row.Text[:s.Start]), utf8.RuneCountInString(row.Text[:s.End]), s.Type}
		at(s.Type).found++
		if want[p] {
			at(s.Type).hit++
			delete(want, p)
		} else {
			report("+", p)
		}
	}
	for p := range want {
		report("-", p)
	}
}
