// Grapheme clusters: what a reader sees as one character.

package tokenize

// What a code point does in a grapheme cluster (Unicode Standard Annex 29, table 3), as the reference
// library's tables have it; in unicodeTables.clusters. Hangul is told by ranges.
const (
	clusterJoins     = 1 << iota // belongs to what stands before it: Extend, ZWJ, SpacingMark
	clusterControl               // stands alone
	clusterPrepend               // what follows belongs to it
	clusterPicture               // Extended_Pictographic
	clusterExtends               // of clusterJoins: may stand between a picture and its ZWJ
	clusterConsonant             // InCB=Consonant
	clusterLinker                // InCB=Linker, which may join the consonant behind it
	clusterConjoins              // InCB=Extend or Linker: may stand between two consonants
)

const zeroWidthJoiner = 0x200d

// clusterState is what the cluster so far says about what may follow.
type clusterState struct {
	prepend, picture, joined, consonant, linked bool
	hangul                                      hangulKind
}

func (c *clusterState) add(r rune, flags uint8) {
	c.prepend = flags&clusterPrepend != 0
	c.hangul = hangulOf(r)
	switch {
	case flags&clusterPicture != 0:
		c.picture, c.joined = true, false
	case c.picture && !c.joined && r == zeroWidthJoiner:
		c.joined = true
	case c.joined || flags&clusterExtends == 0:
		c.picture, c.joined = false, false
	}
	switch {
	case flags&clusterConsonant != 0:
		c.consonant, c.linked = true, false
	case flags&clusterLinker != 0:
		c.linked = c.consonant
	case flags&clusterConjoins == 0:
		c.consonant, c.linked = false, false
	}
}

// takes says whether a character that is no control belongs to the cluster.
func (c *clusterState) takes(r rune, flags uint8) bool {
	return flags&clusterJoins != 0 || c.prepend || c.hangul.takes(hangulOf(r)) ||
		c.joined && flags&clusterPicture != 0 || c.linked && flags&clusterConsonant != 0
}

// cluster is the end of the grapheme cluster that begins at s[i]. Two regional indicators count
// as two clusters. That makes no difference for clusters of less than six bytes, which are all
// that callers look at.
func (u *unicodeTables) cluster(s []byte, i int) int {
	r, n := decode(s, i)
	i += n
	if r == '\r' && i < len(s) && s[i] == '\n' {
		return i + 1
	}
	flags := u.clusters.of(r)
	if flags&clusterControl != 0 {
		return i
	}
	var state clusterState
	state.add(r, flags)
	for i < len(s) {
		r, n = decode(s, i)
		flags = u.clusters.of(r)
		if flags&clusterControl != 0 || !state.takes(r, flags) {
			break
		}
		state.add(r, flags)
		i += n
	}
	return i
}

// hangulKind is the kind of a Hangul letter or syllable: of leading consonants, vowels and trailing
// consonants.
type hangulKind uint8

const (
	noHangul hangulKind = iota
	hangulL
	hangulV
	hangulT
	hangulLV
	hangulLVT
)

func hangulOf(r rune) hangulKind {
	switch {
	case r < jamoL || r > 0xd7fb:
		return noHangul
	case r <= 0x115f, r >= 0xa960 && r <= 0xa97c:
		return hangulL
	case r <= 0x11a7, r >= 0xd7b0 && r <= 0xd7c6:
		return hangulV
	case r <= 0x11ff, r >= 0xd7cb:
		return hangulT
	case r >= hangulBase && r < hangulEnd:
		if (r-hangulBase)%jamoTails == 0 {
			return hangulLV
		}
		return hangulLVT
	}
	return noHangul
}

// takes says whether a letter or syllable belongs to the one before.
func (k hangulKind) takes(next hangulKind) bool {
	switch k {
	case hangulL:
		return next != noHangul && next != hangulT
	case hangulV, hangulLV:
		return next == hangulV || next == hangulT
	case hangulT, hangulLVT:
		return next == hangulT
	}
	return false
}
