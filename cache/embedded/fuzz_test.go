// The file's reader on arbitrary bytes.

package embedded

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"kvasir/cache"
)

// FuzzReader reads records after a fixed header, so that the fuzzer can make valid ones. Each
// valid record is written and read again.
func FuzzReader(f *testing.F) {
	h := header{marker: [8]byte{'m', 'a', 'r', 'k', 'e', 'r', 0, 0xff}}
	e := newEntry(cache.Scope{1}, "question", 10)
	it := newItem(e, true)
	v := randomEmbedding(rand.New(rand.NewPCG(1, 1)), nil, 0)
	it.vector.quantise(&v)
	it.created, it.deadline = 5, 10
	whole := h.put(nil, it, stamp{1, 2})
	bare := h.put(nil, newItem(e, false), stamp{1, 2})
	f.Add(whole)
	f.Add(append(h.drop(nil, e.ID, stamp{3, 4}), h.moment(nil, stamp{5, 6})...))
	f.Add(append(bare[:len(bare)/2:len(bare)/2], whole...))
	f.Add(append(bytes.Repeat(h.marker[:], 4), bare...))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newReader(bytes.NewReader(data), h.marker, 0, int64(len(data)))
		names, found := map[string]string{}, 0
		for {
			body, err := r.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			found++
			rec, err := readRecord(body, names)
			if err != nil || rec.kind != kindPut {
				continue
			}
			again, err := readRecord(h.put(nil, rec.item, rec.at)[headLen:], names)
			if err != nil || again.id != rec.id || again.item.entry.Text != rec.item.entry.Text ||
				(again.item.vector == nil) != (rec.item.vector == nil) {
				t.Fatalf("%+v comes back as %+v, %v", rec, again, err)
			}
		}
		if r.good > int64(len(data)) || r.good < 0 || found == 0 && r.good != 0 {
			t.Fatalf("%d bytes are good of %d", r.good, len(data))
		}
	})
}

// FuzzRecord reads record bodies, as after a correct checksum.
func FuzzRecord(f *testing.F) {
	h := header{}
	e := newEntry(cache.Scope{1}, "question", 10)
	f.Add(h.put(nil, newItem(e, false), stamp{1, 2})[headLen:])
	f.Add(h.put(nil, newItem(e, true), stamp{1, 2})[headLen:])
	f.Add(h.drop(nil, e.ID, stamp{3, 4})[headLen:])
	f.Fuzz(func(t *testing.T, body []byte) {
		rec, err := readRecord(body, map[string]string{})
		if err == nil && rec.kind == kindPut && len(h.put(nil, rec.item, rec.at)) != headLen+len(body) {
			t.Fatal("it comes back with another length")
		}
	})
}

// FuzzHeader reads the beginning of a file.
func FuzzHeader(f *testing.F) {
	h := newHeader("embedding")
	f.Add(h.append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if h, err := readHeader(data); err == nil && !bytes.Contains(data, h.append(nil)[:headerLen-4]) {
			t.Fatal("it comes back as another")
		}
	})
}
