// Noise: stretches that spell nothing to anybody who reads, such as the base64
// of an image, a certificate or a signature. The weights never saw any, and take
// nearly all of it for attacks; what it spells if it is text stands written out
// after it (encoded.go) and is judged.

package classify

// minNoise is how many letters of base64 or hex in a row may be noise: fewer are
// ids, checksums and names, which people write about.
const minNoise = 40

// quiet returns text without its noise: text itself if there is none, else a
// copy in memory that the next call takes again.
func (j attacks) quiet(text []byte) []byte {
	from, to := noise(text, 0)
	if from == to {
		return text
	}
	j.reader.forget() // it knows texts by their place
	j.still = j.still[:0]
	at := 0
	for ; from < to; from, to = noise(text, to) {
		j.still = append(j.still, text[at:from]...)
		at = to
	}
	j.still = append(j.still, text[at:]...)
	return j.still
}

// noise returns where the first noise from i on stands; an empty stretch: there
// is none. A run that is long enough has a byte at each step of that length, so
// that most of a text is not looked at.
func noise(text []byte, i int) (from, to int) {
	for at := i + minNoise - 1; at < len(text); {
		if !isCode(text[at]) {
			at += minNoise
			continue
		}
		from = at
		for from > i && isCode(text[from-1]) {
			from--
		}
		to = codeEnd(text, from)
		if to-from >= minNoise && isNoise(text[from:to]) {
			return from, to
		}
		i, at = to, to+minNoise-1
	}
	return 0, 0
}

func isCode(b byte) bool { return b < 0x80 && byteClass[b]&classCode != 0 }

// isNoise says that a run is no words: hex, or letters, capitals and digits that
// take turns as they do in no words written together, CamelCase or l33t.
func isNoise(run []byte) bool {
	var count [4]int // digits, small letters, capitals, others
	turns, before, joints, hex := 0, -1, 0, true
	n := 0
	for _, b := range run {
		kind := 3
		switch {
		case b == '\r' || b == '\n': // of lines that belong together
			continue
		case '0' <= b && b <= '9':
			kind = 0
		case 'a' <= b && b <= 'z':
			kind = 1
		case 'A' <= b && b <= 'Z':
			kind = 2
		case b == '-' || b == '_':
			joints++
		}
		n++
		hex = hex && nibble(b) >= 0
		count[kind]++
		if kind != before {
			turns++
		}
		before = kind
	}
	if hex {
		return 4*count[0] >= n
	}
	return 2*turns >= n && 16*count[0] >= n && 8*count[1] >= n && 8*count[2] >= n && 12*joints <= n
}
