// The forms of traces: one line of each.

package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// mooncakeRow is a line of the traces that Mooncake published.
type mooncakeRow struct {
	Timestamp    *float64 `json:"timestamp"` // ms
	InputLength  *int     `json:"input_length"`
	OutputLength *int     `json:"output_length"`
	HashIDs      hashIDs  `json:"hash_ids"` // of each 512 tokens
}

// hashIDs are whole numbers, which package json reads one by one by reflection: half the time of reading a trace.
type hashIDs []uint64

// UnmarshalJSON reads a list of numbers as traces have it, and leaves any other value to package json.
func (ids *hashIDs) UnmarshalJSON(value []byte) error {
	if value[0] != '[' {
		return json.Unmarshal(value, (*[]uint64)(ids))
	}
	list := make([]uint64, 0, 1+bytes.Count(value, []byte{','}))
	number, digits := uint64(0), 0
	for _, c := range value[1:] {
		switch {
		case '0' <= c && c <= '9' && digits < 19: // more may not fit
			number, digits = 10*number+uint64(c-'0'), digits+1
		case (c == ',' || c == ']') && digits > 0:
			list = append(list, number)
			number, digits = 0, 0
		case c != ' ' && c != ']':
			return json.Unmarshal(value, (*[]uint64)(ids))
		}
	}
	*ids = list
	return nil
}

func (r *reader) mooncake(line []byte) error {
	var row mooncakeRow
	if err := json.Unmarshal(line, &row); err != nil {
		return unreadable(err)
	}
	switch {
	case row.Timestamp == nil || row.InputLength == nil || row.OutputLength == nil:
		return errors.New("timestamp, input_length or output_length is missing")
	case !(*row.Timestamp >= 0 && *row.Timestamp <= 1e12):
		return fmt.Errorf("timestamp %v is not between 0 and 1e12 ms", *row.Timestamp)
	}
	return r.add(time.Duration(math.Round(*row.Timestamp*1e6)), *row.InputLength, *row.OutputLength, row.HashIDs)
}

// azureColumns say which column of the CSV is which.
type azureColumns struct{ time, prompt, answer, all int }

func (r *reader) azure(line []byte, c azureColumns) error {
	fields := columns(string(line))
	if len(fields) != c.all {
		return fmt.Errorf("%d columns, the first line has %d", len(fields), c.all)
	}
	at, err := azureTime(fields[c.time])
	if err != nil || outside(at) {
		return fmt.Errorf("TIMESTAMP %q is not a time like 2023-11-16 18:17:03.9799600", fields[c.time])
	}
	prompt, err := strconv.Atoi(fields[c.prompt])
	if err != nil {
		return fmt.Errorf("ContextTokens %q is no number", fields[c.prompt])
	}
	answer, err := strconv.Atoi(fields[c.answer])
	if err != nil {
		return fmt.Errorf("GeneratedTokens %q is no number", fields[c.answer])
	}
	return r.add(at.Sub(traceEpoch), prompt, answer, nil)
}

// columns cuts a line of CSV. No value of these traces has a comma of its own, so quotes are no more than an ornament.
func columns(line string) []string {
	fields := strings.Split(line, ",")
	for i, f := range fields {
		f = strings.TrimSpace(f)
		if len(f) >= 2 && f[0] == '"' && f[len(f)-1] == '"' {
			f = f[1 : len(f)-1]
		}
		fields[i] = f
	}
	return fields
}

// azureTime reads a time; the traces of 2024 have a zone, those of 2023 none.
func azureTime(s string) (time.Time, error) {
	at, err := time.Parse("2006-01-02 15:04:05", s)
	if err != nil {
		at, err = time.Parse("2006-01-02 15:04:05Z07:00", s)
	}
	return at, err
}

// traceEpoch is what times are counted from.
var traceEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// outside reports whether a time is too far away for a time.Duration, from traceEpoch and from another one.
func outside(t time.Time) bool { return t.Year() < 1970 || t.Year() > 2100 }

// logRow is a request's line of Kvasir's log (proxy/accesslog.go). It is written when the request is over.
type logRow struct {
	Time       string   `json:"time"`
	TotalMS    *float64 `json:"total_ms"`
	Prompt     *int     `json:"prompt_tokens"`
	Completion *int     `json:"completion_tokens"`
}

func (r *reader) log(line []byte) error {
	var row logRow
	if err := json.Unmarshal(line, &row); err != nil {
		return unreadable(err)
	}
	if row.Prompt == nil || row.Completion == nil || row.TotalMS == nil || *row.Prompt < 1 {
		r.left++
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, row.Time)
	if err != nil || outside(at) {
		return fmt.Errorf("time %q is not like 2026-01-02T15:04:05.000Z", row.Time)
	}
	if !(*row.TotalMS >= 0 && *row.TotalMS <= 1e12) {
		return fmt.Errorf("total_ms %v is not between 0 and 1e12", *row.TotalMS)
	}
	return r.add(at.Sub(traceEpoch)-time.Duration(*row.TotalMS*1e6), *row.Prompt, *row.Completion, nil)
}

// unreadable says what is wrong with a line of JSON, in words for who wrote it.
func unreadable(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		want := "a list of whole numbers"
		switch kind.Type.Kind() {
		case reflect.Float64:
			want = "a number"
		case reflect.Int, reflect.Uint64:
			want = "a whole number"
		case reflect.String:
			want = "a string"
		}
		if strings.HasPrefix(kind.Value, "number ") {
			want = "too large or not " + want
		} else {
			want = "not " + want
		}
		return fmt.Errorf("%s is a %s, %s", kind.Field, kind.Value, want)
	}
	return fmt.Errorf("the line is no JSON object: %w", err)
}
