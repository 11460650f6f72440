// The decoder on bytes that engines sent, bytes that their encoder wrote, and bytes that nobody should.

package kvevents

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write what was decoded into testdata/*.txt")

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

func TestEnginesBytes(t *testing.T) {
	for _, name := range captures {
		t.Run(name, func(t *testing.T) {
			var out script
			decoders := map[[2]int]*Decoder{} // one a source
			for i, row := range readCaptured(t, name) {
				payload := row.Bytes(t)
				if len(payload) == 0 {
					continue
				}
				source := [2]int{row.Port, row.Offset}
				if name == "msgspec" {
					source[0] = i
				}
				if decoders[source] == nil {
					decoders[source] = new(Decoder)
				}
				d := decoders[source]
				var body script
				batch, err := d.Decode(payload, &body)
				if err != nil {
					t.Errorf("row %d: %v", i, err)
				}
				fmt.Fprintf(&out, "%d %s%s: rank %d, %d events\n%s", i, row.Name, row.Label, batch.Rank, batch.Events, body.String())
				if name == "msgspec" {
					fmt.Fprintf(&out, "  %+v\n", d.Counts)
				}
				if d.Counts.Malformed > 0 {
					t.Errorf("row %d: %+v", i, d.Counts)
				}
			}
			golden(t, "testdata/"+name+".txt", out.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; go test -update ./kvroute/kvevents writes it anew, for a person to read the difference", path)
	}
}

// vLLM said with each answer how many tokens it had found cached: the events before it must say the same.
func TestEventsPredictCachedTokens(t *testing.T) {
	h := newHolding()
	var d Decoder
	asked := 0
	step := ""
	for i, row := range readCaptured(t, "vllm") {
		switch row.Kind {
		case "event":
			if _, err := d.Decode(row.Bytes(t), h); err != nil {
				t.Fatal(err)
			}
		case "control":
			h.Cleared(Cleared{}) // vLLM tells of a reset with the next step only
		case "request":
			if row.Step == step {
				continue // at the same time as the one before: what that stored is not told yet
			}
			asked++
			step = row.Step
			want := row.Cached / 32
			got := min(h.overlap(row.Salt, row.Tokens, 32), (len(row.Tokens)-1)/32)
			if got != want {
				t.Errorf("row %d: %d blocks of %d tokens are held, vLLM found %d", i, got, len(row.Tokens), want)
			}
		}
	}
	if asked < 5 || h.strangers > 0 {
		t.Errorf("%d requests, %d removes of unknown blocks", asked, h.strangers)
	}
}

// The mocker's capture has what another decoder made of the same bytes.
func TestMockerAgreesWithAnotherDecoder(t *testing.T) {
	type event struct {
		Type   string
		Hashes []uint64 `json:"block_hashes"`
		Parent *uint64  `json:"parent_block_hash"`
		Tokens []uint32 `json:"token_ids"`
		Size   int      `json:"block_size"`
	}
	for i, row := range readCaptured(t, "mocker") {
		var fields []json.RawMessage
		var events []event
		if err := json.Unmarshal(row.Decoded, &fields); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(fields[1], &events); err != nil {
			t.Fatal(err)
		}
		var want script
		for _, e := range events {
			switch e.Type {
			case "BlockStored":
				s := &Stored{Rank: row.Offset, Handles: e.Hashes, Tokens: e.Tokens, BlockSize: e.Size, LoRAID: Unknown}
				if e.Parent != nil {
					s.HasParent, s.Parent = true, *e.Parent
				}
				want.Stored(s)
			case "BlockRemoved":
				want.Removed(&Removed{Rank: row.Offset, Handles: e.Hashes})
			}
		}
		var got script
		var d Decoder
		if _, err := d.Decode(row.Bytes(t), &got); err != nil || got.String() != want.String() {
			t.Errorf("row %d: %v\n%swant\n%s", i, err, got.String(), want.String())
		}
	}
}

// Payloads that are wrong: what the sink hears and what the error says.
func TestBadPayloads(t *testing.T) {
	stored := func(hashes, tokens, size int) []byte {
		b := msgp.AppendString(msgp.AppendArrayHeader(nil, 5), "BlockStored")
		b = msgp.AppendArrayHeader(b, uint32(hashes))
		for i := range hashes {
			b = msgp.AppendUint64(b, uint64(i))
		}
		b = msgp.AppendArrayHeader(msgp.AppendNil(b), uint32(tokens))
		for i := range tokens {
			b = msgp.AppendInt(b, i)
		}
		return msgp.AppendInt(b, size)
	}
	batch := func(events ...[]byte) []byte {
		b := msgp.AppendArrayHeader(msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 3), 1), uint32(len(events)))
		return append(slices.Concat(b, bytes.Join(events, nil)), 5) // rank 5
	}
	text := func(fields ...string) []byte {
		b := msgp.AppendArrayHeader(nil, uint32(len(fields)))
		for _, f := range fields {
			b = msgp.AppendString(b, f)
		}
		return b
	}
	raw := func(s string) []byte { return []byte(s) }
	good := stored(1, 4, 4)
	heard := "  stored rank 5 device [0] tokens 1 x 4 0..3 group -1\n"
	lost := "  rank 5: unreadable message\n"
	unread := "  rank -1: unreadable message\n"
	token := "a token id is not between"
	for _, row := range []struct {
		name    string
		payload []byte
		heard   string
		problem string
	}{
		{"good", batch(good), heard, ""},
		{"empty", nil, unread, "cannot read a message of KV events"},
		{"no array", raw("\x01"), unread, `with method for "array"`},
		{"one field", raw("\x91\x01"), unread, "a batch of 1 fields"},
		{"cut", batch(good, good)[:50], unread, "cannot read a message of KV events"},
		{"more", append(batch(good), 0), lost, "bytes after the end"},
		{"claims", raw("\x93\x01\xdd\xff\xff\xff\xff\x01"), unread, "4294967295 items claimed in 1 bytes"},
		{"deep", batch(append(bytes.Repeat(raw("\x91"), maxDepth+8), 0)), unread, "nested too deep"},
		{"events are a map", raw("\x93\x01\x80\x01"), "  rank 1: unreadable message\n", `with method for "array"`},
		{"tokens do not fit", batch(good, stored(2, 7, 4), good), heard + heard, "7 tokens for 2 blocks of 4"},
		{"no block size", batch(stored(2, 8, 0), good), heard, "8 tokens for 2 blocks of 0"},
		{"fields missing", batch(text("BlockStored"), good), heard, "a field is missing"},
		{"hashes are text", batch(text("BlockStored", "x", "y", "z", "w"), good), heard, "cannot read a BlockStored"},
		{"no blocks", batch(stored(0, 0, 4), good), heard, ""},
		{"negative token", batch(raw("\x95\xabBlockStored\x91\x01\xc0\x91\xff\x01"), good), heard, token},
		{"empty pair", batch(raw("\x95\xabBlockStored\x91\x01\xc0\x91\x90\x01"), good), heard, token},
		{"pair of pairs", batch(raw("\x95\xabBlockStored\x91\x01\xc0\x91\x91\x91\x01\x01"), good), heard, token},
		{"big token", batch(raw("\x95\xabBlockStored\x91\x01\xc0\x91\xcf\x00\x00\x00\x01\x00\x00\x00\x00\x01"), good), heard, token},
		{"hash is nil", batch(raw("\x95\xabBlockStored\x91\xc0\xc0\x91\x01\x01"), good), heard, "a hash is no number"},
		{"hash is empty", batch(raw("\x95\xabBlockStored\x91\xc4\x00\xc0\x91\x01\x01"), good), heard, "a hash is no number"},
		{"remove without blocks said", batch(text("BlockRemoved"), good), lost + heard, "a field is missing"},
		{"remove of text", batch(text("BlockRemoved", "x"), good), lost + heard, "cannot read a message of KV events: its BlockRemoved"},
		{"event is a number", batch(raw("\x07"), good), heard, ""},
		{"event is empty", batch(raw("\x90"), raw("\x80"), good), heard, ""},
		{"unknown kind", batch(text("BlockMoved", "x"), good), heard, ""},
		{"image in no block", batch(raw("\x99\xabBlockStored\x91\x01\xc0\x91\x01\x01\xc0\xc0\xc0\x92\xc0\x91\xa1x"), good), heard, "extra_keys are not one"},
	} {
		var got script
		var d Decoder
		_, err := d.Decode(row.payload, &got)
		if got.String() != row.heard || (err == nil) != (row.problem == "") ||
			err != nil && !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: error %v, heard\n%swant\n%s", row.name, err, got.String(), row.heard)
		}
		if bad := d.Counts.Malformed > 0; bad != (row.problem != "") {
			t.Errorf("%s: %+v", row.name, d.Counts)
		}
	}
}

func TestTiers(t *testing.T) {
	for medium, want := range map[string]Tier{"": Device, "GPU": Device, "gpu": Device, "CPU": Host, "cpu_tier1": Host,
		"CPU_TIER2": Disk, "storage": Disk, "SHARED": Shared} {
		if got, ok := tierOf([]byte(medium)); !ok || got != want {
			t.Errorf("%q: %v, %v", medium, got, ok)
		}
	}
	for _, medium := range []string{"MOON", "GPU ", strings.Repeat("G", 17)} {
		if got, ok := tierOf([]byte(medium)); ok {
			t.Errorf("%q: %v", medium, got)
		}
	}
}

// checking is a sink that a decoder must not get wrong whatever it reads.
type checking struct {
	t     *testing.T
	bytes int
}

func (c checking) Stored(s *Stored) {
	if len(s.Handles) == 0 || len(s.Handles) > c.bytes || len(s.Tokens) > c.bytes || int(s.Tier) >= Tiers ||
		len(s.Tokens) > 0 && len(s.Tokens) != len(s.Handles)*s.BlockSize || s.BlockSize < 0 ||
		len(s.Extra) > 0 && len(s.Extra) != len(s.Handles) || s.Rank < Unknown || s.Group < Unknown {
		c.t.Fatalf("%+v", s)
	}
}

func (c checking) Removed(r *Removed) {
	if len(r.Handles) == 0 || len(r.Handles) > c.bytes || int(r.Tier) >= Tiers {
		c.t.Fatalf("%+v", r)
	}
}

func (c checking) Cleared(cleared Cleared) {
	if cleared.Reason != ByEngine && cleared.Reason != Damaged {
		c.t.Fatalf("%+v", cleared)
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range captures {
		for _, row := range readCaptured(f, name) {
			if b := row.Bytes(f); len(b) > 0 && len(b) < 4096 {
				f.Add(b)
			}
		}
	}
	var old Decoder // slices that other events used must change nothing
	f.Fuzz(func(t *testing.T, payload []byte) {
		var d Decoder
		before := bytes.Clone(payload)
		batch, err := d.Decode(payload, checking{t, len(payload)})
		if (err != nil) != (d.Counts.Malformed > 0) {
			t.Fatalf("%v, %+v", err, d.Counts)
		}
		if uint64(batch.Events) != d.Counts.Stored+d.Counts.Removed+d.Counts.Cleared {
			t.Fatalf("%d events, %+v", batch.Events, d.Counts)
		}
		var one, two script
		_, _ = new(Decoder).Decode(payload, &one)
		old.groups = groups{}
		_, _ = old.Decode(payload, &two)
		if one.String() != two.String() || !bytes.Equal(before, payload) {
			t.Fatalf("not the same twice:\n%s%s", one.String(), two.String())
		}
	})
}

// nothing is a sink for measurements.
type nothing struct{}

func (nothing) Stored(*Stored)   {}
func (nothing) Removed(*Removed) {}
func (nothing) Cleared(Cleared)  {}

func TestDecodeAllocatesNothing(t *testing.T) {
	for _, name := range captures {
		var d Decoder
		for i, row := range readCaptured(t, name) {
			payload := row.Bytes(t)
			if len(payload) == 0 {
				continue
			}
			if n := testing.AllocsPerRun(100, func() { _, _ = d.Decode(payload, nothing{}) }); n > 0 {
				t.Errorf("%s row %d: %v allocations", name, i, n)
			}
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, name := range captures[:4] {
		b.Run(name, func(b *testing.B) {
			var payloads [][]byte
			size := 0
			for _, row := range readCaptured(b, name) {
				if p := row.Bytes(b); len(p) > 0 {
					payloads = append(payloads, p)
					size += len(p)
				}
			}
			var d Decoder
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for _, p := range payloads {
					_, _ = d.Decode(p, nothing{})
				}
			}
			c := d.Counts
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(c.Stored+c.Removed+c.Cleared), "ns/event")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(c.BlocksStored+c.BlocksRemoved), "ns/block")
		})
	}
}
