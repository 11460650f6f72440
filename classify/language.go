// Language: that of the last user text.

package classify

import (
	"fmt"

	"kvasir/classify/language"
)

// KindLanguage has ISO 639-1 codes as values.
const KindLanguage Kind = "language"

func languageCodes() []string { return language.Codes() }

// languageBytes is how much of a text tells its language.
const languageBytes = 1 << 10

// findLanguage leaves the code empty where the text has no letters.
func (j *judging) findLanguage() error {
	text := head(j.lastUser(), languageBytes)
	if len(text) == 0 {
		return nil
	}
	key, ok := j.c.shared.key(text), false
	if j.v.Language, ok = j.c.shared.language.get(key); !ok {
		l := &j.v.Language
		l.Code, l.Confidence = language.Detect(text)
		j.c.shared.language.put(key, *l)
	}
	return nil
}

func isLanguage(j *judging, value string) (float64, bool) {
	return j.v.Language.Confidence, j.v.Language.Code == value
}

func reportLanguage(v *Verdict) string {
	return fmt.Sprintf("%s %.2f", v.Language.Code, v.Language.Confidence)
}

func foundLanguage(j *judging) string {
	l := &j.v.Language
	if l.Code == "" {
		return "unknown"
	}
	return l.Code + " " + scored(l.Confidence)
}
