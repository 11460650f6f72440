// Features prints what the serving code sees in each text, for the training to learn from.
//
//	features < rows.jsonl > features.bin
//
// A line of the input is {"text": ...}. For each, little-endian: the script and the number of
// windows (uint32), their first and last span (2 x int32 each) and views (1024 float32 each); the number of
// chunks, and for each the number of its n-grams and these (uint32); the number of n-grams of the
// whole text and these.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"kvasir/classify/model"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "features:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	m, err := model.Headless()
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(out, 1<<20)
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	s := new(model.Scratch)
	var b []byte
	for lines.Scan() {
		var row struct{ Text string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return fmt.Errorf("cannot read row: %w", err)
		}
		f := m.Features([]byte(row.Text), s)
		b = binary.LittleEndian.AppendUint32(b[:0], uint32(f.Script))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(f.Windows)))
		for i, window := range f.Windows {
			if b, err = binary.Append(b, binary.LittleEndian, window); err != nil {
				return err
			}
			if b, err = binary.Append(b, binary.LittleEndian, f.Views[i][:]); err != nil {
				return err
			}
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(len(f.Chunks)))
		for _, list := range append(f.Chunks, f.Text) {
			b = binary.LittleEndian.AppendUint32(b, uint32(len(list)))
			if b, err = binary.Append(b, binary.LittleEndian, list); err != nil {
				return err
			}
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("cannot read rows: %w", err)
	}
	return w.Flush()
}
