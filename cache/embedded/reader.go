// Reading a file that may be damaged.

package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// A reader finds the intact records of a file and skips everything else.
type reader struct {
	src    io.Reader
	marker [8]byte
	size   int64 // of the file
	at     int64 // offset of buf[0] in the file
	buf    []byte
	room   []byte // the memory that buf is a part of

	good    int64 // offset after the last intact record
	corrupt int   // damaged records, without an incomplete one at the end
}

const readAhead = 1 << 20

// newReader reads records from offset at on; src must be positioned there.
func newReader(src io.Reader, marker [8]byte, at, size int64) *reader {
	return &reader{src: src, marker: marker, size: size, at: at, good: at, room: make([]byte, readAhead)}
}

// next returns the body of the next intact record, valid until the next call, or io.EOF when
// there is none. The caller should then truncate the file at good.
func (r *reader) next() ([]byte, error) {
	lost, cut := 0, 0 // damaged records since good; of these, those that would be longer than the file
	for {
		body, torn, err := r.whole()
		if err != nil {
			if errors.Is(err, io.EOF) {
				r.corrupt += lost
			}
			return nil, err
		}
		if body != nil {
			r.corrupt += lost + cut
			r.skip(headLen + len(body))
			r.good = r.at
			return body, nil
		}
		if torn {
			cut++
		} else {
			lost++
		}
		if err := r.seek(); err != nil {
			return nil, err
		}
	}
}

// whole returns the body of the record at this offset, nil if it is damaged, and whether it would
// be longer than the file. io.EOF: too few bytes are left.
func (r *reader) whole() (body []byte, torn bool, err error) {
	if r.size-r.at < headLen+bodyMin {
		return nil, true, io.EOF
	}
	if err := r.fill(headLen); err != nil {
		return nil, false, err
	}
	n := int64(binary.LittleEndian.Uint32(r.buf[8:]))
	if !bytes.Equal(r.buf[:8], r.marker[:]) || n < bodyMin || n > maxRecord {
		return nil, false, nil
	}
	if n > r.size-r.at-headLen {
		return nil, true, nil
	}
	if err := r.fill(headLen + int(n)); err != nil {
		return nil, false, err
	}
	record := r.buf[:headLen+n]
	if checksum(record) != binary.LittleEndian.Uint32(record[12:]) {
		return nil, false, nil
	}
	return record[headLen:], false, nil
}

// seek moves to the next marker after this offset, or to where too few bytes are left.
func (r *reader) seek() error {
	r.skip(1)
	for r.size-r.at >= headLen+bodyMin {
		if err := r.fill(len(r.marker)); err != nil {
			return err
		}
		if i := bytes.Index(r.buf, r.marker[:]); i >= 0 {
			r.skip(i)
			return nil
		}
		r.skip(len(r.buf) - len(r.marker) + 1)
	}
	return nil
}

func (r *reader) skip(n int) {
	r.buf = r.buf[n:]
	r.at += int64(n)
}

// fill makes buf at least n bytes long. The file is long enough.
func (r *reader) fill(n int) error {
	if len(r.buf) >= n {
		return nil
	}
	if n > len(r.room) {
		room := make([]byte, max(n, min(2*len(r.room), maxRecord)))
		r.buf, r.room = room[:copy(room, r.buf)], room
	} else {
		r.buf = r.room[:copy(r.room, r.buf)]
	}
	m, err := io.ReadAtLeast(r.src, r.room[len(r.buf):], n-len(r.buf))
	r.buf = r.room[:len(r.buf)+m]
	return err
}
