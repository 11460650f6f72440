package pii

import (
	"slices"
	"testing"
)

func TestMerge(t *testing.T) {
	mail := Span{Start: 10, End: 30, Type: EmailAddress}
	for name, c := range map[string]struct{ rules, names, want []Span }{
		"nothing":           {},
		"side by side":      {[]Span{mail}, []Span{{Start: 0, End: 9, Type: Person}}, []Span{{Start: 0, End: 9, Type: Person}, mail}},
		"name in an e-mail": {[]Span{mail}, []Span{{Start: 10, End: 14, Type: Person}}, []Span{mail}},
		"name before":       {[]Span{mail}, []Span{{Start: 5, End: 14, Type: Person}}, []Span{mail}},
		"longer address": {
			[]Span{{Start: 5, End: 20, Type: StreetAddress}, {Start: 25, End: 30, Type: ZipCode}},
			[]Span{{Start: 3, End: 30, Type: StreetAddress}},
			[]Span{{Start: 3, End: 30, Type: StreetAddress}},
		},
		"shorter address": {
			[]Span{{Start: 5, End: 20, Type: StreetAddress}}, []Span{{Start: 8, End: 20, Type: StreetAddress}},
			[]Span{{Start: 5, End: 20, Type: StreetAddress}},
		},
		"card behind an address of the web": {
			[]Span{{Start: 0, End: 40, Type: DomainName}}, []Span{{Start: 0, End: 22, Type: DomainName}, {Start: 22, End: 40, Type: CreditCard}},
			[]Span{{Start: 0, End: 22, Type: DomainName}, {Start: 22, End: 40, Type: CreditCard}},
		},
		"card in an address": {
			[]Span{{Start: 8, End: 24, Type: CreditCard}}, []Span{{Start: 3, End: 30, Type: StreetAddress}},
			[]Span{{Start: 8, End: 24, Type: CreditCard}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := []Span{{Start: 0, End: 100, Type: Crypto}}
			got := Merge(slices.Clone(before), c.rules, c.names)
			if !slices.Equal(got[:1], before) || !slices.Equal(got[1:], c.want) {
				t.Errorf("Merge(%v, %v) = %v, want %v", c.rules, c.names, got[1:], c.want)
			}
		})
	}
}
