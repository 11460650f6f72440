// Records of the file: puts, drops and time marks.
//
// A file is two copies of the header, then records. All numbers are little endian.
//
//	header  64 bytes: magic 8, format u32, dimension u32, marker u64,
//	        SHA-256 of the embedding's name 32, CRC-32C of these u32, 4 zeros
//	record  marker u64, bytes of the body u32, CRC-32C of these and of the body u32, body
//	body    kind u8, stamp 2 x i64, and
//	 put    id u64, scope 16, created and life i64, whether a vector follows u8,
//	        bytes of tenant, model, text and answer u32 each, these four, vector 512 x i16
//	 drop   id u64
//	 moment nothing
//
// The marker is random for each file, so that, after a corrupt record, bytes of an answer cannot
// pass for the next one.

package embedded

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"

	"kvasir/cache"
)

const (
	magic      = "KVASIRC\n"
	format     = 1
	headerLen  = 64
	headersLen = 2 * headerLen

	headLen   = 16      // of a record, before its body
	bodyMin   = 1 + 16  // a time mark
	maxRecord = 1 << 25 // bytes of a body
	putLen    = bodyMin + 8 + 16 + 16 + 1 + 4*4
)

// Kinds of records.
const (
	kindPut    = 1
	kindDrop   = 2
	kindMoment = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A header says which embedding the records of a file belong to.
type header struct {
	marker    [8]byte
	embedding [sha256.Size]byte // of its name
}

func newHeader(embedding string) (h header) {
	_, _ = rand.Read(h.marker[:]) // never fails
	h.embedding = sha256.Sum256([]byte(embedding))
	return h
}

// append writes the header twice, so that one flipped bit loses nothing.
func (h *header) append(dst []byte) []byte {
	for range 2 {
		from := len(dst)
		dst = append(dst, magic...)
		dst = binary.LittleEndian.AppendUint32(dst, format)
		dst = binary.LittleEndian.AppendUint32(dst, cache.Dim)
		dst = append(dst, h.marker[:]...)
		dst = append(dst, h.embedding[:]...)
		dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
		dst = append(dst, 0, 0, 0, 0)
	}
	return dst
}

// Errors of a header.
var (
	errNotOurs = errors.New("it is not a cache file")
	errFormat  = errors.New("it is a cache file of another version")
)

// readHeader returns the first intact copy of the header.
func readHeader(data []byte) (h header, err error) {
	err = errNotOurs
	for ; len(data) >= headerLen; data = data[headerLen:] {
		sum := binary.LittleEndian.Uint32(data[headerLen-8:])
		switch {
		case string(data[:len(magic)]) != magic, crc32.Checksum(data[:headerLen-8], castagnoli) != sum:
		case binary.LittleEndian.Uint32(data[8:]) != format, binary.LittleEndian.Uint32(data[12:]) != cache.Dim:
			err = errFormat
		default:
			copy(h.marker[:], data[16:])
			copy(h.embedding[:], data[24:])
			return h, nil
		}
	}
	return h, err
}

// begin appends a record's head, which end fills in, and the fields that every body begins with.
func (h *header) begin(dst []byte, kind byte, at stamp) []byte {
	dst = append(dst, h.marker[:]...)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0, kind)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(at.at))
	return binary.LittleEndian.AppendUint64(dst, uint64(at.wall))
}

// end fills in the head of record, which holds one record and nothing else.
func end(record []byte) {
	binary.LittleEndian.PutUint32(record[8:], uint32(len(record)-headLen))
	binary.LittleEndian.PutUint32(record[12:], checksum(record))
}

func checksum(record []byte) uint32 {
	return crc32.Update(crc32.Checksum(record[:12], castagnoli), castagnoli, record[headLen:])
}

// put appends the record of a stored item.
func (h *header) put(dst []byte, it *item, at stamp) []byte {
	from, e := len(dst), it.entry
	dst = h.begin(dst, kindPut, at)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(e.ID))
	dst = append(dst, e.Scope[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(it.created))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(it.deadline-it.created))
	withVector := byte(0)
	if it.vector != nil {
		withVector = 1
	}
	dst = append(dst, withVector)
	for _, n := range [...]int{len(e.Tenant), len(e.Model), len(e.Text), len(e.Answer)} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	}
	dst = append(dst, e.Tenant...)
	dst = append(dst, e.Model...)
	dst = append(dst, e.Text...)
	dst = append(dst, e.Answer...)
	if it.vector != nil {
		dst = it.vector.append(dst)
	}
	end(dst[from:])
	return dst
}

// recordBytes returns how long the record of an entry is.
func recordBytes(e *cache.Entry, withVector bool) int64 {
	n := headLen + putLen + len(e.Tenant) + len(e.Model) + len(e.Text) + len(e.Answer)
	if withVector {
		n += vectorBytes
	}
	return int64(n)
}

// drop appends the record that an entry was removed.
func (h *header) drop(dst []byte, id cache.ID, at stamp) []byte {
	from := len(dst)
	dst = binary.LittleEndian.AppendUint64(h.begin(dst, kindDrop, at), uint64(id))
	end(dst[from:])
	return dst
}

// moment appends a time mark.
func (h *header) moment(dst []byte, at stamp) []byte {
	from := len(dst)
	dst = h.begin(dst, kindMoment, at)
	end(dst[from:])
	return dst
}

// A record as it was read from the file.
type record struct {
	kind byte
	at   stamp
	id   cache.ID // of a put or drop
	item *item    // of a put
}

var errRecord = errors.New("the record is not as it should be")

// readRecord reads a body and keeps no reference to it. names holds the tenants and models read
// so far, so that each is in memory once.
func readRecord(body []byte, names map[string]string) (r record, err error) {
	if len(body) < bodyMin {
		return r, errRecord
	}
	r.kind = body[0]
	r.at = stamp{int64(binary.LittleEndian.Uint64(body[1:])), int64(binary.LittleEndian.Uint64(body[9:]))}
	rest := body[bodyMin:]
	switch r.kind {
	case kindMoment:
		return r, nil
	case kindDrop:
		if len(rest) != 8 {
			return r, errRecord
		}
		r.id = cache.ID(binary.LittleEndian.Uint64(rest))
		return r, nil
	case kindPut:
		r.item, err = readPut(body, names)
		if err == nil {
			r.id = r.item.entry.ID
		}
		return r, err
	}
	return r, errRecord
}

// readPut reads the body of a put. The caller fills in the wall-clock time of the entry.
func readPut(body []byte, names map[string]string) (*item, error) {
	if len(body) < putLen {
		return nil, errRecord
	}
	e := &cache.Entry{ID: cache.ID(binary.LittleEndian.Uint64(body[bodyMin:]))}
	copy(e.Scope[:], body[bodyMin+8:])
	fixed, rest := body[bodyMin+24:putLen], body[putLen:]
	created, life := int64(binary.LittleEndian.Uint64(fixed)), int64(binary.LittleEndian.Uint64(fixed[8:]))
	withVector, vectorLen := fixed[16] == 1, 0
	if withVector {
		vectorLen = vectorBytes
	}
	var parts [4][]byte
	for i := range parts {
		n := int64(binary.LittleEndian.Uint32(fixed[17+4*i:]))
		if n > int64(len(rest)) {
			return nil, errRecord
		}
		parts[i], rest = rest[:n], rest[n:]
	}
	if len(rest) != vectorLen || e.ID == 0 || life < 0 || life > longest || created < -2*longest || created > longest {
		return nil, errRecord
	}
	e.Tenant, e.Model = name(parts[0], names), name(parts[1], names)
	e.Text, e.Answer = string(parts[2]), bytes.Clone(parts[3])
	it := newItem(e, withVector)
	if withVector {
		it.vector.read(rest)
	}
	it.created, it.deadline = created, created+life
	it.record = int64(headLen + len(body))
	return it, nil
}

// maxNames bounds the number of names kept.
const maxNames = 10_000

func name(text []byte, names map[string]string) string {
	if known, ok := names[string(text)]; ok {
		return known
	}
	s := string(text)
	if len(names) < maxNames {
		names[s] = s
	}
	return s
}
