// Facts: what an engine says of itself, and how its figures are read.

package upstream

import (
	"bytes"
	"math"
	"strconv"

	"kvasir/kvroute"
)

// facts are what one reading of an engine's own figures has given.
type facts struct {
	kvroute.EngineFacts
	started       float64 // when its process was started, in seconds since 1970; 0: it does not say
	late, expired uint64  // fetches of KV blocks after their lease was over; prompts whose blocks nobody fetched
	events        string  // SGLang's --kv-events-config, JSON
}

var lineEnd = []byte("\n")

// metricName cuts a line behind the metric's name; "" of comments.
func metricName(line []byte) (name, rest []byte) {
	i := bytes.IndexAny(line, "{ ")
	if i <= 0 || line[0] == '#' {
		return nil, nil
	}
	return line[:i], line[i:]
}

// eachLabel calls do for each label of a line that begins with {. Values keep
// their escapes: none that we read has any. It returns what follows the labels.
func eachLabel(line []byte, do func(name, value []byte)) (rest []byte) {
	if len(line) == 0 || line[0] != '{' {
		return line
	}
	line = line[1:]
	for {
		line = bytes.TrimLeft(line, ", ")
		if len(line) == 0 {
			return nil
		}
		if line[0] == '}' {
			return line[1:]
		}
		name, after, ok := bytes.Cut(line, []byte(`="`))
		if !ok {
			return nil
		}
		end := 0
		for end < len(after) && after[end] != '"' {
			if after[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(after) {
			return nil
		}
		do(name, after[:end])
		line = after[end+1:]
	}
}

// metricValue is the value of a line, from its labels on; 0 if it is no finite number.
func metricValue(rest []byte) float64 {
	rest = bytes.TrimSpace(eachLabel(rest, func([]byte, []byte) {}))
	if i := bytes.IndexByte(rest, ' '); i >= 0 {
		rest = rest[:i] // a time stamp
	}
	v, err := strconv.ParseFloat(string(rest), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// wholeCount is a counter's value, which is a float in the text.
func wholeCount(v float64) uint64 {
	if v < 0 || v > 1<<53 {
		return 0
	}
	return uint64(v)
}

// figure reads a number of at most limit; 0: it is none.
func figure(text []byte, limit int) int {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 0 || n > limit {
		return 0
	}
	return n
}

// A loose number may be null or of another type, which says nothing.
type loose struct{ v float64 }

// UnmarshalJSON reads numbers and passes over all else.
func (n *loose) UnmarshalJSON(b []byte) error {
	n.v, _ = strconv.ParseFloat(string(b), 64)
	return nil
}

// within is the number if it is one from 1 to limit, else 0.
func (n loose) within(limit int) int {
	if n.v >= 1 && n.v <= float64(limit) {
		return int(n.v)
	}
	return 0
}
