// Texts for the tests, of many kinds, the same for the same seed.

package tokenize

import (
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

var sentences = []string{
	"The quick brown fox jumps over the lazy dog; it's 12,345.67 km away, isn't it? WE'LL SEE, they'd said.",
	"Der Fluß fließt über große Straßen; naïve cafés, coöperate, Ångström, Œuvre, İstanbul, ŉ ﬁ ǆ ß.",
	"你好世界，今天天气很好。我们去公园散步吧！「日本語」のテキストです、カタカナ・ひらがな。한국어 텍스트 안녕하세요 여러분",
	"مرحبا بالعالم، كيف حالُكَ؟ שָׁלוֹם עולם Привет, мир! Γειά σου Κόσμε. สวัสดีชาวโลก नमस्ते दुनिया বাংলা தமிழ் ქართული Հայերեն",
	"def f(x, *args):\n    return [i ** 2 for i in range(10) if i % 3 != 0]  # comment\n\n\tif (a != b) {\r\n\t\treturn -1;\r\n\t}\n",
	"👩‍👩‍👧‍👦👍🏽🇩🇪❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🤷🏾‍♀️ e\u0301 n\u0303 q\u0323\u0307 \u1112\u1161\u11ab ½ ² Ⅷ ١٢٣ ४५६ \u00a0\u3000\u2028\u0085x\u200b\ufeff",
	"HTTPServer XMLHttpRequest iPhone15 ǄǅǆʰªＡＢＣ https://example.com/a/b?c=d//e#f {\"key\": [1, 2.5e-3, null, true]}",
	"don't DON'T Don'T can'ſ x'S 'Ll 're'Ve a'b   trailing   \n \n  mixed \t\n\n\n<div class=\"a\">\n</div> $$x_1^2$$ `code` ***",
	"SELECT * FROM users WHERE id = 42 AND name LIKE '%o''brien%'; -- ==== #### ---- .... !!!! ???? //// \\\\ ~~~",
}

var spaces = []string{" ", " ", "  ", "\t", "\n", "\r\n", "\r", "\u00a0", "\u3000", "\u2028", "\u0085", "\v", "\f", "\u200b", "    ", "\n\n", "/", "▁"}

var contractions = []string{"'s", "'S", "'t", "'RE", "'re", "'vE", "'m", "'ll", "'Ll", "'lL", "'d", "'D", "'ſ", "'x", "'", "’s", "'ß", "'l", "'r"}

// clusterParts are characters of each kind in grapheme clusters, some short enough that clusters of
// less than six bytes come out.
var clusterParts = []string{"a", "\r", "\n", "\r\n", "\x01", "\u00ad", "\u0301", "\u0301", "\u0323", "\u200d", "\ufe0f", "\u0903", "\u0600", "\u06dd",
	"\u1100", "\ua960", "\u1161", "\ud7b0", "\u11a8", "\ud7cb", "\uac00", "\uac01", "©", "❤", "👍", "🏽", "🇩", "\u0915", "\u094d", "\u0937", "\u0d4d",
	"\U000110bd", "\U00013430", "\U000e0041", "Ａ", "\uff76", "\uff9e", "ﬁ", "½", "é", "Å", "\u3000", "\u00a0", "\u200b", "\u2028"}

// blocks are ranges of code points that tokenizers often get wrong.
var blocks = [][2]rune{
	{0x20, 0x7e}, {0, 0x1f}, {0x7f, 0x17f}, {0x180, 0x24f}, {0x300, 0x36f}, {0x370, 0x58f}, {0x590, 0x6ff}, {0x900, 0xdff}, {0xe00, 0x109f},
	{0x1100, 0x11ff}, {0x1e00, 0x1fff}, {0x2000, 0x2bff}, {0x3000, 0x30ff}, {0x4e00, 0x9fff}, {0xac00, 0xd7a3}, {0xf900, 0xfdff},
	{0xfe00, 0xffff}, {0x10000, 0x11fff}, {0x1d000, 0x1d7ff}, {0x1f000, 0x1faff}, {0x20000, 0x2fa1f}, {0xe0000, 0xe01ef}, {0, 0x10ffff},
}

// texts makes texts for one tokenizer, whose own tokens it uses too.
type texts struct {
	*rand.Rand
	tokenizer *Tokenizer
	added     []string
}

func newTexts(seed uint64, t *Tokenizer) *texts {
	m := &texts{Rand: rand.New(rand.NewPCG(seed, 1)), tokenizer: t}
	for _, f := range []*finder{t.raw, t.normalised} {
		if f != nil {
			for _, a := range f.added {
				m.added = append(m.added, a.Content)
			}
		}
	}
	return m
}

func pick[T any](m *texts, of []T) T { return of[m.IntN(len(of))] }

func (m *texts) rune() rune {
	for {
		b := pick(m, blocks)
		if r := b[0] + m.Int32N(b[1]-b[0]+1); utf8.ValidRune(r) {
			return r
		}
	}
}

// cut is some of a text, cut between bytes, so that it may begin and end in the middle of a
// character.
func (m *texts) cut(s string) string {
	from := m.IntN(len(s))
	return s[from : from+m.IntN(len(s)-from+1)]
}

// runes is the same, cut between characters.
func (m *texts) runes(s string) string {
	r := []rune(s)
	from := m.IntN(len(r))
	return string(r[from : from+m.IntN(len(r)-from+1)])
}

func (m *texts) fragment() string {
	var b strings.Builder
	switch m.IntN(15) {
	case 0, 1, 2:
		return m.runes(pick(m, sentences))
	case 3:
		return m.cut(pick(m, sentences))
	case 4: // white space
		for range 1 + m.IntN(8) {
			b.WriteString(pick(m, spaces))
		}
	case 5: // special tokens in what a user says, whole and cut
		if len(m.added) == 0 {
			return "<s>"
		}
		token := pick(m, m.added)
		if m.IntN(4) == 0 {
			token = m.runes(token)
		}
		return pick(m, []string{"", " ", "a", "\n", "é"}) + token + pick(m, []string{"", "  ", "b", ">", "\t"})
	case 6: // one thing again and again
		s := string(m.rune())
		if m.IntN(2) == 0 {
			s = pick(m, []string{"a", " ", "\n", "=", "-", "0", "ab", "é", "中", "\u0301", "👍", " a", "A", "\t", "Aa", "'s"})
		}
		return strings.Repeat(s, 1+m.IntN(1<<m.IntN(9)))
	case 7: // code points of one block
		block := pick(m, blocks)
		for range 1 + m.IntN(12) {
			if r := block[0] + m.Int32N(block[1]-block[0]+1); utf8.ValidRune(r) {
				b.WriteRune(r)
			}
		}
	case 8: // of all blocks
		for range 1 + m.IntN(12) {
			b.WriteRune(m.rune())
		}
	case 9: // bytes that are no text
		for range 1 + m.IntN(6) {
			b.WriteByte(pick(m, []byte{0xc3, 0xe2, 0x82, 0xf0, 0x9f, 0x98, 0xff, 0xed, 0xa0, 0x80, 'a', 0xc0, 0xf4, 0x90, 0xfe, 0xe0}))
		}
	case 10: // tokens of the vocabulary, which may be parts of characters
		var token []byte
		for range 1 + m.IntN(6) {
			token = m.tokenizer.AppendBytes(token, m.Uint32N(uint32(m.tokenizer.Size())))
		}
		return string(token)
	case 11:
		for range 1 + m.IntN(3) {
			b.WriteString(pick(m, []string{"", "I", "x", "É", "1", " "}) + pick(m, contractions) + pick(m, []string{"", "e", "S", " ", "1"}))
		}
	case 13: // what belongs together in grapheme clusters, or seems to
		for range 1 + m.IntN(6) {
			b.WriteString(pick(m, clusterParts))
		}
	case 12: // numbers
		for range 1 + m.IntN(10) {
			b.WriteString(pick(m, []string{"1", "23", "4567", "٣", "½", "Ⅷ", ".", ",", " ", "x"}))
		}
	default: // marks on letters, in any order
		b.WriteRune(pick(m, []rune{'a', 'q', 'é', 'Ω', 'ا', 'क', 0x1112, 0xac00, 'ß', ' ', '1'}))
		for range 1 + m.IntN(5) {
			b.WriteRune(pick(m, []rune{0x301, 0x323, 0x307, 0x345, 0x308, 0x93c, 0x1161, 0x11ab, 0x64b, 0x651, 0x200d, 0xfe0f, 0x20e3, 0x1d165, 0x1133e}))
		}
	}
	return b.String()
}

// text is one text, empty at times, mostly short.
func (m *texts) text() string {
	var b strings.Builder
	for range m.IntN(2 + m.IntN(8)) {
		b.WriteString(m.fragment())
	}
	return b.String()
}

// giants are long texts of one word, or of what is costly to cut.
func (m *texts) giants() []string {
	all := []string{mixedText(m, 1<<16)}
	for _, s := range []string{"a", " ", "\n", "ab", "'s", "\u0301", "Aア", "\n ", "=", "中", "\x00", "é", "<", "1", "\xe2"} {
		all = append(all, strings.Repeat(s, 1<<16/len(s)))
	}
	for _, block := range [][2]rune{{'a', 'z'}, {'!', '~'}, {0x4e00, 0x9fff}, {0x300, 0x36f}, {0x1100, 0x11ff}} {
		var b strings.Builder
		for b.Len() < 1<<15 {
			b.WriteRune(block[0] + m.Int32N(block[1]-block[0]+1))
		}
		all = append(all, b.String())
	}
	return all
}

func mixedText(m *texts, size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(m.fragment())
	}
	return b.String()
}
