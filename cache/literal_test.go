// Which questions only the same bytes answer.

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
