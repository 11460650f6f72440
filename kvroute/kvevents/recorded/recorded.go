// Package recorded is what engines said of their caches, for tests: bytes of their events that were recorded, and what
// one that runs says of a prompt.
//
//	for _, row := range recorded.Read(t, "testdata/vllm.jsonl") {
//		batch, err := decoder.Decode(row.Bytes(t), sink)
package recorded

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// A Row is a line of a recording: a message, or a request with what the engine had cached of it. Each engine's recording
// has some of the fields.
type Row struct {
	Kind  string // event, control or request; "": a message
	Step  string // of the recording: requests of one step were sent at the same time
	Name  string // what the message shows
	Label string // the same

	// The message, hexadecimal: its frames, of which the last is msgpack, or that alone.
	Frames    []string
	FramesHex []string `json:"frames_hex"`
	Payload   string

	Tokens  []uint32 `json:"prompt_token_ids"` // of a request
	Cached  int      `json:"cached_tokens"`    // that the engine found
	Salt    string   `json:"cache_salt"`
	Request struct { // that the message came of
		Tokens []uint32 `json:"prompt_token_ids"`
	}
	Decoded json.RawMessage // the message as another decoder read it
	Port    int             `json:"pub_port_index"` // of the engine's rank that sent it
	Offset  int             `json:"pub_port_dp_offset"`
}

// Bytes is the row's msgpack, empty if it has none.
func (r *Row) Bytes(t testing.TB) []byte {
	t.Helper()
	text := r.Payload
	for _, frames := range [][]string{r.Frames, r.FramesHex} {
		if len(frames) > 0 {
			text = frames[len(frames)-1]
		}
	}
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Read reads the rows of a recording, of which there is at least one.
func Read(t testing.TB, path string) (rows []Row) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row Row
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if lines.Err() != nil || len(rows) == 0 {
		t.Fatalf("%s: %d rows, %v", path, len(rows), lines.Err())
	}
	return rows
}
