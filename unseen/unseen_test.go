// Tests of what counts as unseen.

package unseen

import (
	"strings"
	"testing"
	"unicode"
)

func TestCount(t *testing.T) {
	for _, row := range []struct {
		name, text string
		want       int
	}{
		{"plain", "What is the capital of France?\r\n\tBye", 0},
		{"accents, Chinese, Russian", "na\u00efve nai\u0308ve 你好，世界 Привет", 0},
		{"other spaces", "12\u00a0000\u202f€\u3000a\u2003b\u0085c\u2028d", 0},
		{"heart", "I ❤️ it", 0},
		{"text, not emoji", "☎\ufe0e", 0},
		{"family", "👩\u200d👩\u200d👧", 0},
		{"rainbow flag", "🏳️\u200d🌈", 0},
		{"skin", "👍🏽 👩🏽\u200d🚀", 0},
		{"keycap", "1️⃣ #️⃣", 0},
		{"Scotland", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f!", 0},
		{"Persian", "می\u200cخواهم بدانم", 0},
		{"Hindi", "क्\u200dष और क्\u200cष", 0},
		{"Sinhala", "ශ්\u200dරී", 0},
		{"Mongolian", "ᠠ\u180bᠭ", 0},
		{"Braille", "⠓⠊\u2800⠽⠕⠥", 0},

		{"two marks on a letter", "o\u031b\u0301 e\u0302\u0301 ẹ\u0301 v\u20d7", 0},
		{"points of Hebrew", "שׁ\u05bc\u05b8\u0591לום", 0},
		{"Arabic", "مُعَلِّمٌ", 0},
		{"Thai, Hindi, Burmese", "ที่ผู้ใหญ่ क्षेत्रीय ကြွေးကြော်", 0},

		{"a heap of marks", "a\u0300\u0301\u0302\u0303b", 2},
		{"a heap on a question mark", "?\u0300\u0301\u0302", 1},
		{"marks with a filler between", "a\u0300\u0301\u034f\u0302", 2},
		{"a heap of points", "ש\u05b0\u05b1\u05b2\u05b3\u05b4\u05b5", 2},
		{"tags", "hi\U000e0069\U000e0067", 2},
		{"tags behind another flag", "🏴\U000e0064\U000e0065\U000e007f", 3},
		{"tags behind Scotland's", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f\U000e0061", 1},
		{"zero width", "a\u200bb\ufeff\u2060", 3},
		{"joiner between Latin letters", "a\u200db\u200cc", 2},
		{"two in Persian", "می\u200c\u200cخواهم", 2},
		{"bits at the end of Persian", "می\u200c\u200d", 2},
		{"bytes behind an emoji", "😀\ufe0f\ufe01\ufe02\U000e0101", 3},
		{"selector behind a letter", "a\ufe0f", 1},
		{"selector behind a digit", "1\ufe0f2", 1},
		{"joiner behind a lone emoji", "😀\u200d", 1},
		{"bidirectional", "\u202eabc\u202c\u2066d\u2069\u200f", 5},
		{"soft hyphens", "co\u00adop", 1},
		{"fillers", "\u3164\u115f\u1160\uffa0", 4},
		{"controls", "a\x00\x07\x1b[31m\x7f\u0080", 5},
		{"music and shorthand", "\U0001d173\U0001bca0", 2},
		{"set aside to be ignored", "\U000e0fff\u2065\ufff0\ufff9", 4},
		{"grapheme joiner, Khmer", "\u034f\u17b4", 2},
		{"blank Braille", "a\u2800\u2800b", 2},
		{"not UTF-8", "\xff\xfe", 0},
	} {
		if got := Count([]byte(row.text)); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

// The table agrees with the properties from which the standard derives it.
func TestIgnorableIsDefaultIgnorable(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Cf) &&
			!unicode.In(r, unicode.White_Space, unicode.Prepended_Concatenation_Mark) &&
			!(r >= 0xfff9 && r <= 0xfffb) && !(r >= 0x13430 && r <= 0x13440)
		if got := unicode.Is(ignorable, r); got != want {
			t.Errorf("%U: %v, want %v", r, got, want)
		}
		if want && !hidden(r) {
			t.Errorf("%U is ignorable and not hidden", r)
		}
	}
}

func BenchmarkCount(b *testing.B) {
	for name, text := range map[string]string{"english": "What is the capital of France? ", "chinese": "法国的首都是哪里？", "hindi": "फ्रांस की राजधानी क्या है? "} {
		b.Run(name, func(b *testing.B) {
			t := []byte(strings.Repeat(text, 4096/len(text)))
			b.SetBytes(int64(len(t)))
			for b.Loop() {
				if Count(t) > 0 {
					b.Fatal("unseen")
				}
			}
		})
	}
}
