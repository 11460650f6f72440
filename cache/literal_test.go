// Which questions may be answered only by the same bytes.

package cache

import (
	"strings"
	"testing"
)

func TestLiteral(t *testing.T) {
	for text, want := range map[string]string{
		"What is the capital of France?":                         "",
		"  What is the capital of France?\n":                     "",
		"\u00a0Quelle est la capitale de la France\u202f?\u3000": "",
		"how tall":         "",
		"法国的首都是哪里？":        "",
		"你是谁呀":             "",
		"что такое любовь": "",
		"می\u200cخواهم بدانم پایتخت فرانسه کجاست؟": "",
		"क्\u200dष क्या है?":                       "",
		"What does ❤️ mean?":                       "",
		"Is 👩\u200d👩\u200d👧 a family?":             "",
		"naïve cafés in Zürich":                    "",
		"What is a blockchain?":                    "",
		"SELECT name FROM users WHERE id = 5":      "",
		"html vs css, which first":                 "",
		"Angstschweiß und Herbststurm":             "",
		"wie heißt der Fluss in Łódź":              "",
		"root 16":                                  "",
		"explain x86 assembly":                     "",
		"请问GPU和CPU":                                "",

		"What is the capital of France?\U000e0020\U000e0069": WhyHidden,
		"What is the cap\u200bital of France?":               WhyHidden,
		"\ufeffWhat is the capital of France?":               WhyHidden,
		"What is the capital of Fr\u00adance?":               WhyHidden,
		"What is the capital of France? 😀\ufe01\ufe02":       WhyHidden,
		"\u202eWhat is the capital of France?":               WhyHidden,
		"What is the capital of France?\x07":                 WhyHidden,
		"What is the capital of France?\u3164":               WhyHidden,
		"What is the capital of France? \u2003\u2002\u2003":  WhyHidden,
		"What is the capital of France?" + spaces(35):        WhyHidden,

		"What is the capital\ue073\ue061\ue079 of France?":                                                   WhyHidden, // private use
		"What is the capital of France? \U000f0073\U000f0061":                                                WhyHidden,
		"What is the capital of France?\u0378\u0379":                                                         WhyHidden, // not assigned
		"What is the capital of France? \ufffc\ufffc":                                                        WhyHidden,
		"What is the capital of France? \U0001d159":                                                          WhyHidden,
		"What is the capital of Fr\u20dda\u20dence?":                                                         WhyHidden,
		"What is\u2009\u200athe capital of France?":                                                          WhyHidden,
		"What\u2028is\u2028the capital of France?":                                                           WhyHidden,
		"What is the" + spaces(35) + "capital of France?":                                                    WhyHidden,
		"What" + spaces(10) + "is the" + spaces(10) + "capital" + spaces(10) + "of" + spaces(10) + "France?": WhyHidden,
		"What is\u00a0\u00a0the capital of France?":                                                          WhyHidden,
		"What is \u00a0the capital of France?":                                                               WhyHidden,
		"What is the capital of France?\n    \n  \n   \n      \n  \n     \n      \n ":                        WhyHidden,
		"What is the capital\n \t \t\t   \t \t  \t\t\t \t   \t\t  \t   \t \t\t \t\tof France?":               WhyHidden,
		"What is the capital of \U0001f1eb\U0001f1f7 and \U0001f1e9\U0001f1ea?":                              "",
		"Quelle est la capitale\u202f? Et le nom\u202f?":                                                     "",
		"What does ① mean?":                                                                                  "",
		"def f(x):\n                return x\n\nWhy is this wrong?":                                          "",
		"def f(x):\r\n\t\t\treturn x\r\n\r\nWhy is this wrong?\r\n":                                          "",
		"if x:\n" + strings.Repeat("            print(x)\n", 50) + "Why is this wrong?":                      "",
		"What is the capital of France?\n\n\n\n    ":                                                         "",

		// many marks on one letter
		"What is the capital of France" + strings.Repeat("\u0301\u0308\u030a", 40) + "?":                    WhyHidden,
		"What is the\u0302\u0301\u0306 capital of France?":                                                  WhyHidden,
		"פ" + strings.Repeat("\u05b0", 9) + " מה היא בירת צרפת":                                             WhyHidden,
		"Thu\u0309 đo\u0302 cu\u0309a nu\u031bo\u031b\u0301c Pha\u0301p la\u0300 gi\u0300 va\u0323\u0302y?": "", // Vietnamese, decomposed letters
		"ẹ\u0301 kú ilé o": "", // Yoruba
		"מָה הִיא בִּירַת צָרְפַת וּמַה שְׁמָהּ?":        "",
		"مَا هِيَ عَاصِمَةُ فَرَنْسَا وَلِمَ سُمِّيَتْ؟": "",
		"เมืองหลวงของฝรั่งเศสคืออะไร ผู้ใหญ่รู้":         "",
		"फ़्रांस की राजधानी क्या है?":                    "",
		"ပြင်သစ်နိုင်ငံရဲ့ မြို့တော်က ဘာလဲ ကြွေးကြော်":   "",
		"What do x\u0304 and p\u0302 mean": "",

		// alternating kinds of white space
		spacedWith(horse, "\n", "\u00a0", "\u202f", " ", "\u3000", "\t", "\n\n"):                                                    WhyHidden,
		spacedWith(horse, " ", "\n", "\n", " ", " "):                                                                                WhyHidden,
		spacedWith(horse, "  ", " ", " ", "  ", " "):                                                                                WhyHidden,
		spacedWith(horse, "\n    ", " ", "\n", " ", " "):                                                                            WhyHidden,
		spacedWith(horse, "\t", " ", " "):                                                                                           WhyHidden,
		"法 国的 首都 是哪 里请 你告 诉我 为什么 会 是 这样":                                                                                            WhyHidden,
		strings.ReplaceAll(horse, " ", "\u00a0"):                                                                                    "", // all of one kind
		strings.ReplaceAll(horse, " ", "\n"):                                                                                        "",
		"Please sort these words:\napple\nbanana\nplum\npear\nfig\nlemon\nlime\nkiwi\ndate\ngrape":                                  "",
		"Dear all,\n\nwe meet on Monday.  Please bring the plan.\n\nBest\nAnn\n\nWhat is the tone of this letter?":                  "",
		"Which is larger?\nA) a horse\nB) a small cow\nC) two cats\nD) one old dog\nE) a fly\nF) the sun\nG) no":                    "",
		"My list:\n\t- two eggs\n\t- some milk\n\t- a loaf of bread\n\t- tea\n1.\tcall home\n2.\tgo to bed\nIs it long?":            "",
		"Quelle est la capitale\u00a0? Et «\u00a0Paris\u00a0», 12\u202f000 km\u00a0; 5\u00a0% de quoi\u202f! Oui\u00a0: non\u00a0?": "",
		"日本の首都は？\u3000フランスの首都は？\u3000教えてください。":                                                                                      "",
		wrappedAt(72, strings.Repeat(horse+" ", 4)):                                                                                 "",

		"ㅋㅋㅋㅋ ㅋㅋ":     WhyShort,
		"ㅁㄴㅇㄹ ㅂㅈㄷㄱ":   WhyShort,
		"ㅋㅋ 파리":       WhyShort,
		"ﾻﾻﾻ ﾾﾾﾾ":     WhyShort,
		"哈哈哈哈哈哈":      WhyShort,
		"ㅋㅋ 프랑스의 수도는": "",
		"\u1111\u1173\u1105\u1161\u11bc\u1109\u1173\u110b\u1174 \u1109\u116e\u1103\u1169\u1102\u1173\u11ab": "", // decomposed

		"":              WhyShort,
		"hello":         WhyShort,
		"Hello!":        WhyShort,
		"😀😀":            WhyShort,
		"👍🏽 🎉":          WhyShort,
		"??? !!":        WhyShort,
		"2 + 2 = ?":     WhyShort,
		"你好":            WhyShort,
		"привет":        WhyShort,
		"x86":           WhyShort,
		"1\ufe0f\u20e3": WhyShort,

		"asdkjh qwlkej zxmcn":        WhyNoise,
		"xkqj vbnm wrtp":             WhyNoise,
		"k3#f 9sL@ zz!q p0$x":        WhyNoise,
		"vJq2 wPz9 sdkfj qwxv hgfds": WhyNoise,
	} {
		if got := Literal([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

const horse = "Please explain to me in some detail how the heart of a horse pumps blood through all of its body and why it beats slower than the heart of a man when both of them are at rest"

// spacedWith puts the gaps, in rotation, between the words of a text.
func spacedWith(text string, gaps ...string) string {
	var b strings.Builder
	for i, word := range strings.Fields(text) {
		if i > 0 {
			b.WriteString(gaps[i%len(gaps)])
		}
		b.WriteString(word)
	}
	return b.String()
}

// wrappedAt breaks a text into lines of at most so many bytes.
func wrappedAt(width int, text string) string {
	var b strings.Builder
	line := 0
	for _, word := range strings.Fields(text) {
		if line > 0 && line+1+len(word) > width {
			b.WriteByte('\n')
			line = 0
		} else if line > 0 {
			b.WriteByte(' ')
			line++
		}
		b.WriteString(word)
		line += len(word)
	}
	return b.String()
}

func spaces(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = " \t"[i&1]
	}
	return string(b)
}

func BenchmarkLiteral(b *testing.B) {
	text := []byte("How do I reset my password if I do not have access to my e-mail any more?")
	for b.Loop() {
		Literal(text)
	}
}
