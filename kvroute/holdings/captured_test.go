// Real engines' bytes into the index.

package holdings

import (
	"testing"

	"kvasir/kvroute/kvevents"
	"kvasir/kvroute/kvevents/recorded"
	"kvasir/kvroute/kvindex"
)

func captured(t *testing.T, name string) []recorded.Row {
	t.Helper()
	return recorded.Read(t, "../kvevents/testdata/"+name+".jsonl")
}

func decode(t *testing.T, r *recorded.Row, d *kvevents.Decoder, s *sink) {
	t.Helper()
	if _, err := d.Decode(r.Bytes(t), s); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) leadingOf(tokens []uint32, salt string, size int) int {
	for _, o := range b.index.Find(nil, kvindex.AppendNames(nil, kvindex.SeedOf("", "", salt), tokens, size)) {
		return int(o.Device)
	}
	return 0
}

// vLLM said with each answer how many tokens it had found cached: the index says as many, with salts, with blocks
// stored and removed twice, and with hashes of 32 bytes.
func TestVLLMFoundWhatTheIndexSays(t *testing.T) {
	for _, c := range []struct {
		file  string
		least int
	}{{"vllm", 5}, {"vllm_bytes_hash", 0}} {
		b := newBench(t, 0)
		var d kvevents.Decoder
		asked, hits, step := 0, 0, ""
		for i, r := range captured(t, c.file) {
			switch r.Kind {
			case "event", "":
				decode(t, &r, &d, b.sink)
			case "control":
				b.Cleared(kvevents.Cleared{}) // vLLM tells of a reset with the next step only
			case "request":
				if r.Step != "" && r.Step == step {
					continue // at the same time as the one before: what that stored is not told yet
				}
				asked++
				step = r.Step
				got := min(b.leadingOf(r.Tokens, r.Salt, 32), (len(r.Tokens)-1)/32)
				if got != r.Cached/32 {
					t.Errorf("%s, row %d: %d blocks of %d tokens are held, vLLM found %d tokens", c.file, i, got, len(r.Tokens), r.Cached)
				}
				hits += got
			}
		}
		if asked < c.least || b.counted(Stored) == 0 || b.counted(RemoveUnknown)+b.counted(Orphan)+b.counted(Reused)+b.counted(Contradicting) > 0 {
			t.Errorf("%s: %d requests, %d hits, %v", c.file, asked, hits, b.said())
		}
	}
}

// Dynamo's mocker, two ranks: of every prompt the rank that computed it holds all full blocks once it has told of them.
func TestMockersPromptsAreFound(t *testing.T) {
	type rank struct{ port, offset int }
	benches := map[rank]*bench{}
	decoders := map[rank]*kvevents.Decoder{}
	found := 0
	for _, r := range captured(t, "mocker") {
		at := rank{r.Port, r.Offset}
		if benches[at] == nil {
			benches[at], decoders[at] = newBench(t, 0), &kvevents.Decoder{}
		}
		b := benches[at]
		decode(t, &r, decoders[at], b.sink)
		if n := b.leadingOf(r.Request.Tokens, "", 16); n > 0 {
			found++
			if n != len(r.Request.Tokens)/16 {
				t.Errorf("%+v: %d of %d blocks", at, n, len(r.Request.Tokens)/16)
			}
		}
	}
	if len(benches) != 2 || found < 10 {
		t.Errorf("%d ranks, %d prompts found", len(benches), found)
	}
}

// SGLang's signed hashes and its own way to say a salt.
func TestSGLangsChains(t *testing.T) {
	b := newBench(t, 0)
	var d kvevents.Decoder
	for _, r := range captured(t, "sglang") {
		if len(r.Bytes(t)) == 0 {
			continue // a request, or the end of a replay
		}
		decode(t, &r, &d, b.sink)
	}
	if b.counted(Stored) == 0 || b.counted(Orphan)+b.counted(Contradicting)+b.counted(WrongSize)+b.counted(Reused) > 0 || len(b.said()) > 0 {
		t.Errorf("%d stored, %d orphans, %q", b.counted(Stored), b.counted(Orphan), b.said())
	}
}
