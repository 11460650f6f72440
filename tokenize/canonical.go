// Unicode's canonical forms: NFC, NFD, NFKC and NFKD, with the reference library's tables.

package tokenize

import (
	"slices"
	"unicode/utf8"
)

// form is a kind of decomposition.
type form bool

const (
	canonical  form = false // of NFC and NFD
	compatible form = true  // of NFKC and NFKD, which also take apart what only looks different
)

// stableIn is stable for a form: for the compatible form it also stops before a character that
// this form takes apart.
func (u *unicodeTables) stableIn(s []byte, flags uint8, form form) int {
	end := u.stable(s, flags)
	if form == canonical {
		return end
	}
	for i := 0; i < end; {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := decode(s, i)
		if _, ok := u.compat[r]; ok {
			return i
		}
		i += n
	}
	return end
}

// A normalForm makes one of the four forms of a text.
type normalForm struct {
	u        *unicodeTables
	form     form
	composes bool // NFC and NFKC put together again what was taken apart
}

func (n normalForm) keeps(text []byte) bool {
	flags := uint8(flagCombining | flagNFD)
	if n.composes {
		flags = flagCombining | flagNFC
	}
	return n.u.stableIn(text, flags, n.form) == len(text)
}

func (n normalForm) append(dst, text []byte, s *scratch) []byte {
	if n.form == compatible {
		s.wide = n.u.expanded(s.wide[:0], text)
		text = s.wide
	}
	if n.composes {
		return n.u.nfc(dst, text, &s.runes)
	}
	return n.u.nfd(dst, text, &s.runes)
}

// expanded appends a text with each character that the compatible form takes apart replaced by
// its parts.
func (u *unicodeTables) expanded(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		r, n := decode(text, i)
		if to, ok := u.compat[r]; ok && r >= utf8.RuneSelf {
			dst = append(dst, to...)
		} else {
			dst = append(dst, text[i:i+n]...)
		}
		i += n
	}
	return dst
}

// Hangul syllables are composed by arithmetic: The Unicode Standard, section 3.12.
const (
	hangulBase = 0xac00
	hangulEnd  = hangulBase + jamoLeads*jamoVowels*jamoTails
	jamoL      = 0x1100
	jamoV      = 0x1161
	jamoT      = 0x11a7 // one before the first
	jamoLeads  = 19
	jamoVowels = 21
	jamoTails  = 28
)

// ranked is a code point with its combining class.
type ranked struct {
	r      rune
	rank   uint8
	change int32 // what it does to the old text, for tracer.put
}

// stable is how many bytes of s come before the first character with one of the flags.
func (u *unicodeTables) stable(s []byte, flags uint8) int {
	for i := 0; i < len(s); {
		if s[i] < 0x80 {
			for i++; i+8 <= len(s) && load64(s[i:])&highBits == 0; {
				i += 8
			}
			continue
		}
		class, n := u.wide(s, i)
		if class&flags != 0 {
			return i
		}
		i += n
	}
	return len(s)
}

// nfc appends the composed form of s to dst.
func (u *unicodeTables) nfc(dst, s []byte, buffer *[]ranked) []byte {
	const flags = flagCombining | flagNFC
	for len(s) > 0 {
		// Only a flagged character changes, or changes the one before it; the rest is copied.
		flagged := u.stable(s, flags)
		if flagged == len(s) {
			break
		}
		from := flagged
		for from > 0 {
			from--
			if utf8.RuneStart(s[from]) {
				break
			}
		}
		dst = append(dst, s[:from]...)
		to := flagged
		for to < len(s) {
			class, n := u.at(s, to)
			if class&flags == 0 {
				break
			}
			to += n
		}
		*buffer = u.decomposed((*buffer)[:0], s[from:to])
		for _, c := range u.composed(*buffer) {
			dst = utf8.AppendRune(dst, c.r)
		}
		s = s[to:]
	}
	return append(dst, s...)
}

// nfd appends the decomposed form of s to dst.
func (u *unicodeTables) nfd(dst, s []byte, buffer *[]ranked) []byte {
	const flags = flagCombining | flagNFD
	for len(s) > 0 {
		from := u.stable(s, flags)
		dst = append(dst, s[:from]...)
		to := from
		for to < len(s) {
			class, n := u.at(s, to)
			if class&flags == 0 {
				break
			}
			to += n
		}
		*buffer = u.decomposed((*buffer)[:0], s[from:to])
		for _, c := range *buffer {
			dst = utf8.AppendRune(dst, c.r)
		}
		s = s[to:]
	}
	return dst
}

// decomposed appends the code points of s, decomposed and in canonical order.
func (u *unicodeTables) decomposed(dst []ranked, s []byte) []ranked {
	for i := 0; i < len(s); {
		r, n := decode(s, i)
		dst = u.decomposedRune(dst, r)
		i += n
	}
	ordered(dst)
	return dst
}

// ordered sorts marks that follow one another by their combining class.
func ordered(dst []ranked) {
	byRank := func(a, b ranked) int { return int(a.rank) - int(b.rank) }
	for i := 0; i < len(dst); {
		if dst[i].rank == 0 {
			i++
			continue
		}
		j := i + 1
		for j < len(dst) && dst[j].rank != 0 {
			j++
		}
		slices.SortStableFunc(dst[i:j], byRank)
		i = j
	}
}

func (u *unicodeTables) decomposedRune(dst []ranked, r rune) []ranked {
	if r >= hangulBase && r < hangulEnd {
		s := r - hangulBase
		dst = append(dst, ranked{r: jamoL + s/(jamoVowels*jamoTails)}, ranked{r: jamoV + s%(jamoVowels*jamoTails)/jamoTails})
		if t := s % jamoTails; t > 0 {
			dst = append(dst, ranked{r: jamoT + t})
		}
		return dst
	}
	if s, ok := u.decompose[r]; ok {
		dst = u.decomposedRune(dst, s.first) // a few steps deep: the table has no loops
		if s.second != 0 {
			dst = u.decomposedRune(dst, s.second)
		}
		return dst
	}
	return append(dst, ranked{r: r, rank: u.combining[r]})
}

// composed composes in place, and returns what is left.
func (u *unicodeTables) composed(all []ranked) []ranked {
	starter, n := -1, 0
	last := uint8(0) // the rank of the code point before, if that is not the starter
	for _, c := range all {
		if starter >= 0 && (n == starter+1 || last < c.rank && last != 0) {
			if r, ok := u.composedPair(all[starter].r, c.r); ok {
				all[starter].r = r
				all[starter].change += c.change - 1
				continue
			}
		}
		all[n] = c
		if c.rank == 0 {
			starter = n
		}
		last = c.rank
		n++
	}
	return all[:n]
}

func (u *unicodeTables) composedPair(a, b rune) (rune, bool) {
	if a >= jamoL && a < jamoL+jamoLeads && b >= jamoV && b < jamoV+jamoVowels {
		return hangulBase + ((a-jamoL)*jamoVowels+b-jamoV)*jamoTails, true
	}
	if a >= hangulBase && a < hangulEnd && (a-hangulBase)%jamoTails == 0 && b > jamoT && b < jamoT+jamoTails {
		return a + b - jamoT, true
	}
	r, ok := u.compose[step{a, b}]
	return r, ok
}
