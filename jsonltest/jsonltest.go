// Package jsonltest reads files of JSON lines in tests.
//
//	for _, row := range jsonltest.Read[struct{ Text string }](t, "testdata/texts.jsonl") {
package jsonltest

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// maxLine is how long a line may be, in bytes.
const maxLine = 64 << 20

// Read decodes each line of a file. A file that cannot be read, a line that cannot be decoded, or no
// line at all ends the test.
func Read[T any](tb testing.TB, path string) (rows []T) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			tb.Fatalf("%s:%d: %v", path, len(rows)+1, err)
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	if len(rows) == 0 {
		tb.Fatalf("%s has no lines", path)
	}
	return rows
}
