// Manner: how much of a thing is asked for, and how it is to be told.

package verify

import "bytes"

// shareDiffers refuses pairs in which one asks for all things of a kind and the other for some.
func shareDiffers(p *pair) bool {
	return p.a.mentions("all") != p.b.mentions("all") && p.a.mentions("some") != p.b.mentions("some") &&
		p.a.mentions("all") == p.b.mentions("some")
}

// mentions reports whether a word stands in the text, also in a phrase that says nothing else.
func (s *side) mentions(word string) bool {
	for i := range s.raws {
		if string(s.rawText(i)) == word {
			return true
		}
	}
	return false
}

// meaningDiffers refuses pairs in which one asks what a thing means and the other what it does.
func meaningDiffers(p *pair) bool {
	return p.a.endsWith("mean") && p.b.endsWith("do") || p.a.endsWith("do") && p.b.endsWith("mean")
}

// useDiffers refuses pairs in which one asks what a thing is for and the other does not.
func useDiffers(p *pair) bool {
	return p.a.asksUse() != p.b.asksUse()
}

// asksUse reports whether "for" ends the question and is unmatched, or 有什么用 does.
func (s *side) asksUse() bool {
	last := len(s.words) - 1
	return s.form == what && s.endsWith("for") && s.words[last].match < 0 || bytes.HasSuffix(s.text, []byte("有什么用"))
}

// othersDiffer refuses pairs in which one wants another thing than was told before, or this one explained.
func othersDiffer(p *pair) bool {
	for _, word := range [...]string{"another", "again"} {
		if p.a.mentions(word) != p.b.mentions(word) {
			return true
		}
	}
	return (p.a.explains || p.b.explains) && p.a.mentions("this") != p.b.mentions("this")
}

func (s *side) endsWith(word string) bool {
	return len(s.words) > 0 && string(s.word(len(s.words)-1)) == word
}

// comparedDiffer refuses comparisons in which one has a thing more (A and B; A, B and C), or asks why they differ.
func comparedDiffer(p *pair) bool {
	return p.a.compares && p.b.compares && (p.a.comparesMore() || p.b.comparesMore() || (p.a.form == why) != (p.b.form == why))
}

// comparesMore reports whether the word behind "and" or "or" is unmatched.
func (s *side) comparesMore() bool {
	for i := 1; i < len(s.words); i++ {
		if s.words[i].match >= 0 {
			continue
		}
		switch string(s.word(i - 1)) {
		case "and", "or", "vs", "versus", "和", "与", "跟":
			return true
		}
	}
	return false
}

// mannerDiffers refuses pairs in which one wants a thing explained simply, or in detail, and the other does not.
func mannerDiffers(p *pair) bool { return mannerOf(&p.a) != mannerOf(&p.b) }

// A manner is how a thing is to be explained.
type manner uint8

const (
	plainly manner = iota // nothing is said about it
	simply
	inDetail
)

func mannerOf(s *side) manner {
	switch {
	case !s.explains:
		return plainly
	case bytes.Contains(s.text, []byte("详细")):
		return inDetail
	case bytes.Contains(s.text, []byte("简单")), bytes.Contains(s.text, []byte("通俗")), s.endsSimply():
		return simply
	}
	return plainly
}

// endsSimply reports whether a clause ends with "simply": explain it simply, not simply explain it.
func (s *side) endsSimply() bool {
	for i := range s.raws {
		if string(s.rawText(i)) == "simply" && (i+1 == len(s.raws) || s.raws[i+1].kind == stop) {
			return true
		}
	}
	return false
}
