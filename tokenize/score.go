// Reading the scores of a vocabulary, equal to the reference library's to the last bit.

package tokenize

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// number returns the next value, a number, as serde_json reads it for the reference library: it
// rounds the digits as one whole number to a float64, multiplies that by a power of ten, and
// rounds again. strconv.ParseFloat rounds once, which sometimes gives another float64 and so
// another way to cut a word.
func (r *jsonReader) number() (float64, error) {
	r.peek()
	start := r.at
	for r.at < len(r.data) && literal(r.data[r.at]) {
		r.at++
	}
	text := string(r.data[start:r.at])
	if _, err := strconv.ParseFloat(text, 64); err != nil || !json.Valid([]byte(text)) {
		r.at = start
		return 0, r.wrong("a number was expected")
	}
	value, ok := serdeFloat(text)
	if !ok {
		r.at = start
		return 0, r.wrong("a number out of range")
	}
	return value, nil
}

// serdeFloat is the value of a number of JSON's grammar; false where it is out of range.
func serdeFloat(text string) (float64, bool) {
	text, negative := strings.CutPrefix(text, "-")
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits, exponent, full := uint64(0), 0, false
	for i, c := range []byte(whole + fraction) {
		if next := digits*10 + uint64(c-'0'); !full && digits <= (math.MaxUint64-uint64(c-'0'))/10 {
			digits = next
			if i >= len(whole) {
				exponent--
			}
			continue
		}
		// More digits than an uint64 holds: the rest only counts before the point.
		if full = true; i < len(whole) {
			exponent++
		}
	}
	if power != "" {
		n, err := strconv.Atoi(power)
		if err != nil || n > 1<<20 || n < -1<<20 {
			return 0, false
		}
		exponent += n
	}
	value := float64(digits)
	for exponent < -308 && value != 0 {
		value, exponent = value/1e308, exponent+308
	}
	switch {
	case value == 0:
	case exponent > 308:
		return 0, false
	case exponent < 0:
		value /= math.Pow10(-exponent)
	default:
		value *= math.Pow10(exponent)
	}
	if negative {
		value = -value
	}
	return value, !math.IsInf(value, 0)
}
