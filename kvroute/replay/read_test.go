// Reading traces: the three forms, and what is said of bad lines.

package replay

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

const mooncakeRows = `{"timestamp": 0, "input_length": 1000, "output_length": 5, "hash_ids": [7, 9]}
{"timestamp": 3000, "input_length": 512, "output_length": 0, "hash_ids": [7], "more": true}

{"timestamp": 27.5, "input_length": 513, "output_length": 3, "hash_ids": [9, 12345678901234567890]}
`

const azureRows = "\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\r\n" +
	"2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109\r\n"

const logRows = `{"level":"info","time":"2026-11-21T10:00:00.000Z","message":"serving"}
{"level":"info","time":"2026-11-21T10:00:10.000Z","total_ms":8000,"prompt_tokens":700,"completion_tokens":90,"message":"request"}
{"level":"info","time":"2026-11-21T10:00:09.500+00:00","total_ms":7900.5,"prompt_tokens":20,"completion_tokens":5,"message":"request"}
{"level":"info","time":"2026-11-21T10:00:09.500Z","total_ms":3,"status":401,"message":"request"}
`

func TestReadForms(t *testing.T) {
	for _, c := range []struct {
		name, text string
		arrivals   []time.Duration // after the first
		prompts    []int
		answers    []int
		content    [][]uint32
		lines      []int
		left       int
	}{
		{"mooncake", mooncakeRows, []time.Duration{0, 27500 * time.Microsecond, 3 * time.Second},
			[]int{1000, 513, 512}, []int{5, 3, 1}, [][]uint32{{0, 1}, {1, 2}, {0}}, []int{1, 4, 2}, 0},
		{"azure", azureRows, []time.Duration{0, 4314579 * time.Microsecond}, []int{374, 396}, []int{44, 109},
			[][]uint32{{0}, {1}}, []int{2, 3}, 0},
		{"azure, quoted, with a zone", "\"TIMESTAMP\", \"ContextTokens\",\"GeneratedTokens\"\r\n\"2024-05-10 00:00:01.5+00:00\",\"7\", \"2\"\r\n2024-05-10 02:00:02+02:00,8,3\n",
			[]time.Duration{0, 500 * time.Millisecond}, []int{7, 8}, []int{2, 3}, [][]uint32{{0}, {1}}, []int{2, 3}, 0},
		{"log", logRows, []time.Duration{0, 400500 * time.Microsecond}, []int{20, 700}, []int{5, 90}, [][]uint32{{2}, {0, 1}}, []int{3, 2}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace, err := ReadFrom("t", strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if len(trace.Requests) != len(c.prompts) || trace.Left != c.left {
				t.Fatalf("%d requests, %d lines left out", len(trace.Requests), trace.Left)
			}
			for i, r := range trace.Requests {
				if r.PromptTokens != c.prompts[i] || r.AnswerTokens != c.answers[i] || r.Line != c.lines[i] ||
					!slices.Equal(r.Content, c.content[i]) || r.Arrival-trace.Requests[0].Arrival != c.arrivals[i] {
					t.Errorf("request %d is %+v", i, r)
				}
			}
		})
	}
}

func TestBadTraces(t *testing.T) {
	const row = `{"timestamp": 0, "input_length": 1000, "output_length": 5, "hash_ids": [7, 9]}` + "\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "cannot read the trace: t: the trace has no requests"},
		{"a header alone", "TIMESTAMP,ContextTokens,GeneratedTokens\n", "cannot read the trace: t: the trace has no requests"},
		{"a log of no requests", `{"time":"x","message":"y"}`, "cannot read the trace: t: the trace has no requests: none of its 1 lines is a served request with prompt_tokens and completion_tokens"},
		{"another file", "#!/bin/sh\n", "cannot read the trace: t:1: " + errForm.Error()},
		{"another CSV", "a,b,c\n1,2,3\n", "cannot read the trace: t:1: " + errForm.Error()},
		{"another JSON", `{"prompt": "x"}`, "cannot read the trace: t:1: " + errForm.Error()},
		{"cut JSON", row + `{"timestamp": 5, "input_le`, "cannot read the trace: t:2: the line is no JSON object: unexpected end of JSON input"},
		{"another type", row + `{"timestamp": "now", "input_length": 1, "output_length": 1, "hash_ids": [1]}`, "cannot read the trace: t:2: timestamp is a string, not a number"},
		{"a time beyond numbers", row + `{"timestamp": 1e400, "input_length": 1, "output_length": 1, "hash_ids": [1]}`, "cannot read the trace: t:2: timestamp is a number 1e400, too large or not a number"},
		{"a number beyond numbers", row + `{"timestamp": 1, "input_length": 99999999999999999999, "output_length": 1, "hash_ids": [1]}`, "cannot read the trace: t:2: input_length is a number 99999999999999999999, too large or not a whole number"},
		{"not a number", row + `{"timestamp": 1, "input_length": NaN, "output_length": 1, "hash_ids": [1]}`, "cannot read the trace: t:2: the line is no JSON object: invalid character 'N' looking for beginning of value"},
		{"a negative length", row + `{"timestamp": 1, "input_length": -1, "output_length": 1, "hash_ids": [1]}`, "cannot read the trace: t:2: a prompt of -1 tokens: it must have 1 to 16777216"},
		{"a missing field", row + `{"timestamp": 5, "input_length": 1}`, "cannot read the trace: t:2: timestamp, input_length or output_length is missing"},
		{"a time of before", row + `{"timestamp": -5, "input_length": 1, "output_length": 1, "hash_ids": [1]}`, "cannot read the trace: t:2: timestamp -5 is not between 0 and 1e12 ms"},
		{"no prompt", row + `{"timestamp": 5, "input_length": 0, "output_length": 1, "hash_ids": []}`, "cannot read the trace: t:2: a prompt of 0 tokens: it must have 1 to 16777216"},
		{"a long answer", row + `{"timestamp": 5, "input_length": 1, "output_length": 16777217, "hash_ids": [1]}`, "cannot read the trace: t:2: an answer of 16777217 tokens: it must have 0 to 16777216"},
		{"one id", row + `{"timestamp": 5, "input_length": 1, "output_length": 1, "hash_ids": 1}`, "cannot read the trace: t:2: hash_ids is a number, not a list of whole numbers"},
		{"ids in a list of their own", row + `{"timestamp": 5, "input_length": 1, "output_length": 1, "hash_ids": [[1]]}`, "cannot read the trace: t:2: hash_ids is a array, not a whole number"},
		{"a negative id", row + `{"timestamp": 5, "input_length": 1, "output_length": 1, "hash_ids": [1, -1]}`, "cannot read the trace: t:2: hash_ids is a number -1, too large or not a whole number"},
		{"a large id", row + `{"timestamp": 5, "input_length": 1, "output_length": 1, "hash_ids": [18446744073709551616]}`, "cannot read the trace: t:2: hash_ids is a number 18446744073709551616, too large or not a whole number"},
		{"few ids", row + `{"timestamp": 5, "input_length": 513, "output_length": 1, "hash_ids": [1]}`, "cannot read the trace: t:2: 1 hash_ids for a prompt of 513 tokens: it must have one for each 512 tokens"},
		{"a column too few", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374\n", "cannot read the trace: t:2: 2 columns, the first line has 3"},
		{"no time", "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,374,1\n", `cannot read the trace: t:2: TIMESTAMP "yesterday" is not a time like 2023-11-16 18:17:03.9799600`},
		{"a word for a number", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,many,1\n", `cannot read the trace: t:2: ContextTokens "many" is no number`},
		{"a log without a time", `{"time":"soon","total_ms":5,"prompt_tokens":3,"completion_tokens":1}`, `cannot read the trace: t:1: time "soon" is not like 2026-01-02T15:04:05.000Z`},
		{"a long line", row + `{"timestamp": 5` + strings.Repeat(" ", maxLine), "cannot read the trace: t:2: the line is longer than 4194304 bytes: is this a trace?"},
	} {
		if _, err := ReadFrom("t", strings.NewReader(c.text)); err == nil || err.Error() != c.want {
			t.Errorf("%s: error\n%v, want\n%s", c.name, err, c.want)
		}
	}
}

// One file of nothing but mistakes gives five, not a million.
func TestProblemsAreBounded(t *testing.T) {
	_, err := ReadFrom("t", strings.NewReader(mooncakeRows+strings.Repeat("{}\n", 1000)))
	var first *Problem
	if !errors.As(err, &first) || first.Name != "t" || first.Line != 5 {
		t.Fatalf("error %v", err)
	}
	if n := strings.Count(err.Error(), "missing"); n != maxProblems {
		t.Errorf("%d problems told, want %d", n, maxProblems)
	}
}

func TestReadNamesTheFile(t *testing.T) {
	if _, err := Read("testdata/nowhere.jsonl"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// Whatever the bytes are: an error, or a trace whose requests can be named.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{mooncakeRows, azureRows, logRows, `{"timestamp":1e308,"input_length":1,"output_length":1,"hash_ids":[0]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		trace, err := ReadFrom("t", strings.NewReader(string(data)))
		if err != nil {
			return
		}
		var tokens []uint32
		last := trace.Requests[0].Arrival
		for i := range trace.Requests {
			r := &trace.Requests[i]
			if r.PromptTokens < 1 || r.AnswerTokens < 1 || len(r.Content)*trace.PieceTokens < r.PromptTokens || r.Arrival < last {
				t.Fatalf("%+v", r)
			}
			last = r.Arrival
			if r.PromptTokens <= 1<<16 {
				trace.names(r, 64, &tokens)
			}
		}
		if c := trace.Ceiling(64); c < 0 || c > 1 {
			t.Fatalf("ceiling %v", c)
		}
	})
}
