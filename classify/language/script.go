// Script: which letters a text is written in.

package language

import (
	"unicode/utf8"
)

// A script is one kind of letters.
type script uint8

// The scripts that several languages share come first: they have a table.
const (
	latin script = iota
	cyrillic
	arabic
	devanagari
	bengali
	none
	han
	kana
	firstAlone script = iota - 2
)

// alone are the languages of scripts that only one language here has.
var alone = []string{
	han: "zh", kana: "ja", 8: "ko", 9: "th", 10: "el", 11: "he", 12: "hy", 13: "ka", 14: "lo", 15: "km", 16: "my",
	17: "ta", 18: "te", 19: "kn", 20: "ml", 21: "gu", 22: "pa", 23: "or", 24: "si", 25: "am", 26: "bo",
}

// blocks are the ranges of letters, ascending, with the weight of a letter: a
// Chinese one says as much as a few Latin ones.
var blocks = [...]struct {
	first, last rune
	script      script
	weight      int
}{
	{'A', 'Z', latin, 1}, {'a', 'z', latin, 1}, {0xc0, 0x24f, latin, 1},
	{0x370, 0x3ff, 10, 1}, {0x400, 0x52f, cyrillic, 1}, {0x530, 0x58f, 12, 1}, {0x590, 0x5ff, 11, 1},
	{0x600, 0x6ff, arabic, 1}, {0x750, 0x77f, arabic, 1},
	{0x900, 0x97f, devanagari, 1}, {0x980, 0x9ff, bengali, 1}, {0xa00, 0xa7f, 22, 1}, {0xa80, 0xaff, 21, 1},
	{0xb00, 0xb7f, 23, 1}, {0xb80, 0xbff, 17, 1}, {0xc00, 0xc7f, 18, 1}, {0xc80, 0xcff, 19, 1},
	{0xd00, 0xd7f, 20, 1}, {0xd80, 0xdff, 24, 1}, {0xe00, 0xe7f, 9, 1}, {0xe80, 0xeff, 14, 1},
	{0xf00, 0xfff, 26, 1}, {0x1000, 0x109f, 16, 1}, {0x10a0, 0x10ff, 13, 1}, {0x1100, 0x11ff, 8, 2},
	{0x1200, 0x139f, 25, 2}, {0x1780, 0x17ff, 15, 1}, {0x1e00, 0x1eff, latin, 1}, {0x1f00, 0x1fff, 10, 1},
	{0x3041, 0x30ff, kana, 3}, {0x3400, 0x9fff, han, 4}, {0xac00, 0xd7af, 8, 4}, {0xf900, 0xfaff, han, 4},
	{0xfb50, 0xfdff, arabic, 1}, {0xfe70, 0xfefc, arabic, 1}, {0x20000, 0x3ffff, han, 4},
}

// scriptOf is the script of most letters; Chinese ones with some kana among
// them are Japanese.
func scriptOf(text []byte) script {
	var weights [32]int
	for i := 0; i < len(text); {
		if b := text[i]; b < utf8.RuneSelf {
			if b |= 'a' - 'A'; 'a' <= b && b <= 'z' {
				weights[latin]++
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		i += n
		if b := blockOf(r); b >= 0 {
			weights[blocks[b].script] += blocks[b].weight
		}
	}
	if 8*weights[kana] > weights[han] {
		weights[kana] += weights[han]
	} else {
		weights[han] += weights[kana]
	}
	best := none
	for s, w := range weights {
		if w > weights[best] {
			best = script(s)
		}
	}
	return best
}

// blockOf is the block of a letter; -1: none of them.
func blockOf(r rune) int {
	low, high := 0, len(blocks)
	for low < high {
		mid := (low + high) / 2
		switch {
		case r < blocks[mid].first:
			high = mid
		case r > blocks[mid].last:
			low = mid + 1
		default:
			return mid
		}
	}
	return -1
}
