// Language: that of the last user text.
package classify

import "kvasir/classify/language"

// KindLanguage has ISO 639-1 codes as values.
const KindLanguage Kind = "language"

func languageCodes() []string { return language.Codes() }

// findLanguage leaves the code empty where the text has no letters.
func (j *judging) findLanguage() error {
	l := &j.v.Language
	l.Code, l.Confidence = language.Detect(j.lastUser())
	return nil
}

func isLanguage(j *judging, value string) (float64, bool) {
	return j.v.Language.Confidence, j.v.Language.Code == value
}

func foundLanguage(j *judging) string {
	l := &j.v.Language
	if l.Code == "" {
		return "unknown"
	}
	return l.Code + " " + scored(l.Confidence)
}
