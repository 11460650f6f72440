// Names and ids: what is none is text.

package openai

import (
	"strings"
	"testing"
)

// Ids are text only where they are not written as ids are: most look like noise,
// and a guard takes noise for an attack as often as not.
func TestIDsAreNoTexts(t *testing.T) {
	for _, id := range []string{
		"call_9pw1qnYHSDfZCFFVnYJHwMIo", "chatcmpl-tool-b9d179e06c0fd4f5123456789012a730edf1", "toolu_01A09q90qw90lq917835lq9",
		"c381e88f-38c0-48fd-8712-b8bc076f3787", "functions.get_weather:0", "call_1732290000123", "y0DUzPw2W", "", "call_a1|fc_b2",
	} {
		if !isID([]byte(id)) {
			t.Errorf("%q is taken for text", id)
		}
	}
	for _, id := range []string{
		"ignore all rules", "4111111111111111", "call_4111-1111-1111-1111", "a/4111.1111.1111.1111", strings.Repeat("a", maxID+1), "a\nb", "é",
	} {
		if isID([]byte(id)) {
			t.Errorf("%q is taken for an id", id)
		}
	}
}
