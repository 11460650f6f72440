// Values: the text of one scalar to the Go value of its key, with a hint when it is nearly right.

package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvasir/kvroute"
	"kvasir/upstream"
	"kvasir/wording"
)

// Parse reads the text of a scalar for this key and gives a string, bool,
// int, float64, time.Duration or Size within the key's bounds. The error is
// what stands after "path: ".
func (k *Key) Parse(text string) (any, error) {
	var v any
	var err error
	switch k.Kind {
	case KindText, KindPath:
		v, err = k.parseText(text)
	case KindBool:
		v, err = parseBool(text)
	case KindInt:
		v, err = parseInt(text)
	case KindFloat:
		v, err = parseFloat(text)
	case KindDuration:
		v, err = parseDuration(text)
	case KindSize:
		v, err = parseSize(text)
	default:
		panic("BUG: no scalar: " + k.path)
	}
	if err != nil {
		return nil, err
	}
	return v, k.inBounds(v, text)
}

func (k *Key) parseText(text string) (string, error) {
	if len(k.OneOf) == 0 {
		return text, nil
	}
	for _, v := range k.OneOf {
		if v == text {
			return text, nil
		}
	}
	if k.of == "policies" {
		if p, err := kvroute.ParsePolicy(text); err == nil {
			return p.String(), nil
		}
	}
	// YAML writes off as false, too.
	if text == "false" && k.OneOf[len(k.OneOf)-1] == "off" {
		return "off", nil
	}
	hint := wording.DidYouMean(text, k.OneOf)
	for _, names := range []map[string]string{otherNames, upstream.OtherEngineNames()} {
		if other := names[wording.Plain(text)]; slices.Contains(k.OneOf, other) {
			hint = fmt.Sprintf(", did you mean %q?", other)
		}
	}
	return "", fmt.Errorf("must be %s, not %s%s", wording.List(k.OneOf, "or"), wording.Quote(text), hint)
}

// otherNames are what people call values of enumerations, as wording.Plain writes them;
// of engines their rows say it.
var otherNames = map[string]string{
	"roundrobin": "round_robin", "leastconn": "least_loaded", "least_request": "least_loaded", "power_of_two": "p2c",
	"ignore": "off", "none": "off", "on": "auto", "exclude": "aside", "drain": "aside", "price": "cost",
	"warning": "warn", "text": "pretty", "console": "pretty",
}

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "yes", "on":
		return true, nil
	case "false", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("must be true or false, not %s", wording.Quote(text))
}

func parseInt(text string) (int, error) {
	n, err := strconv.Atoi(text)
	switch {
	case zeroFirst(text):
		return 0, ambiguous(text)
	case err == nil:
		return n, nil
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is out of range", wording.Quote(text))
	}
	if f, ferr := strconv.ParseFloat(text, 64); ferr == nil && f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return 0, fmt.Errorf("must be a whole number, not %s; did you mean %q?", wording.Quote(text), strconv.FormatFloat(f, 'f', -1, 64))
	}
	if bare := strings.ReplaceAll(strings.ReplaceAll(text, "_", ""), ",", ""); isDigits(bare) {
		return 0, fmt.Errorf("must be a whole number, not %s; did you mean %q?", wording.Quote(text), bare)
	}
	return 0, fmt.Errorf("must be a whole number, not %s", wording.Quote(text))
}

// zeroFirst says whether a number begins with a 0 that counts for nothing, or
// makes it octal: YAML 1.1 and 1.2 differ about 010.
func zeroFirst(text string) bool {
	text = strings.TrimLeft(text, "+-")
	return len(text) > 1 && text[0] == '0' && '0' <= text[1] && text[1] <= '9'
}

func ambiguous(text string) error {
	return fmt.Errorf("%s could be read as octal; write it without the 0 at its beginning", wording.Quote(text))
}

func parseFloat(text string) (float64, error) {
	if zeroFirst(text) {
		return 0, ambiguous(text)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("must be a number, not %s", wording.Quote(text))
	}
	return f, nil
}

// parseDuration reads Go's durations. A bare 0 is one, other bare numbers are not.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	hint := ""
	if isDigits(text) {
		hint = text + "s"
	} else {
		hint = longUnits.ReplaceAllStringFunc(strings.ToLower(strings.ReplaceAll(text, " ", "")), shortUnit)
	}
	if _, err := time.ParseDuration(hint); err != nil || hint == text {
		return 0, fmt.Errorf("%s is not a duration such as 250ms, 10s or 1m30s", wording.Quote(text))
	}
	return 0, fmt.Errorf("%s is not a duration, did you mean %q?", wording.Quote(text), hint)
}

var longUnits = regexp.MustCompile(`[0-9]+[a-z]+`)

// shortUnit turns 10sec, 5min or 2days into what time.ParseDuration reads.
func shortUnit(part string) string {
	digits := strings.TrimRight(part, "abcdefghijklmnopqrstuvwxyz")
	unit := part[len(digits):]
	switch strings.TrimSuffix(unit, "s") {
	case "d", "day":
		if n, err := strconv.Atoi(digits); err == nil && n < 100_000 {
			return strconv.Itoa(24*n) + "h"
		}
	case "hour", "hr":
		return digits + "h"
	case "min", "minute":
		return digits + "m"
	case "sec", "second":
		return digits + "s"
	case "msec", "milli", "millisecond":
		return digits + "ms"
	}
	return part
}

// sizeUnits are the units of a size: powers of 1024 and of 1000.
var sizeUnits = map[string]float64{
	"": 1, "B": 1,
	"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
	"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

func parseSize(text string) (Size, error) {
	number := strings.TrimRight(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz ")
	unit := strings.ToUpper(strings.TrimSpace(text[len(number):]))
	factor, known := sizeUnits[unit]
	if zeroFirst(number) {
		return 0, ambiguous(text)
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(f) || strings.ContainsAny(number, "xXpP_") {
		return 0, fmt.Errorf("%s is not a size such as 32MiB, 64KB or a number of bytes", wording.Quote(text))
	}
	if !known {
		if _, ok := sizeUnits[unit+"IB"]; ok && unit != "" {
			return 0, fmt.Errorf("%s is not a size, did you mean %q?", wording.Quote(text), number+unit+"iB")
		}
		return 0, fmt.Errorf("%s is not a size: the unit is one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB", wording.Quote(text))
	}
	n := f * factor
	if math.Abs(n) > 1<<53 {
		return 0, fmt.Errorf("%s is out of range", wording.Quote(text))
	}
	return Size(n), nil
}

// inBounds compares a value with min and max of its key.
func (k *Key) inBounds(v any, text string) error {
	n, isNumber := number(v)
	if !isNumber {
		return nil
	}
	lo, hasLo := number(k.min)
	hi, hasHi := number(k.max)
	switch {
	case hasLo && n < lo && n < 0 && lo >= 0:
		return fmt.Errorf("must not be negative, is %s", text)
	case hasLo && n < lo:
		return fmt.Errorf("must be at least %s, is %s", Show(k.min), text)
	case hasHi && n > hi:
		return fmt.Errorf("must be at most %s, is %s", Show(k.max), text)
	}
	return nil
}

// wanted says what may stand under k, for a message that must not quote what does.
func (k *Key) wanted() string {
	s := "a " + string(k.Kind)
	switch {
	case len(k.OneOf) > 0:
		s = wording.List(k.OneOf, "or")
	case k.Kind == KindInt:
		s = "a whole number"
	}
	if k.min != nil && k.max != nil {
		s += " from " + Show(k.min) + " to " + Show(k.max)
	}
	return s
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	case time.Duration:
		return float64(v), true
	case Size:
		return float64(v), true
	}
	return 0, false
}

// Show writes a value as a person would write it in YAML.
func Show(v any) string {
	switch v := v.(type) {
	case time.Duration:
		return shortDuration(v)
	case Size:
		return v.String()
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// shortDuration is v.String() without zero minutes and seconds: 1h, not 1h0m0s.
func shortDuration(v time.Duration) string {
	s := v.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// String writes a size with the largest unit that divides it: 32MiB.
func (s Size) String() string {
	units := [...]string{"", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for s != 0 && s%1024 == 0 && i < len(units)-1 {
		s, i = s/1024, i+1
	}
	return strconv.FormatInt(int64(s), 10) + units[i]
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
