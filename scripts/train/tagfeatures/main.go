// Tagfeatures prints what the tagger sees, for the training to learn from.
//
//	tagfeatures -words < phrases.txt          the hashes of each line's words, and of pairs
//	tagfeatures -lists lists.bin < rows.jsonl > features.bin
//
// A line of rows is {"text": ...}. For each, little-endian: the number of words (uint32), and for
// each word: start and end in bytes (2 x int32), its hash (uint64), the table's part of the input
// (512 float16) and the bits (uint8 each).
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"

	"kvasir/classify/model"
	"kvasir/classify/tagger"
)

func main() {
	words := flag.Bool("words", false, "print hashes of words")
	lists := flag.String("lists", "", "file with the word lists' table")
	flag.Parse()
	err := error(nil)
	if *words {
		err = printWords(os.Stdin, os.Stdout)
	} else {
		err = printInputs(os.Stdin, os.Stdout, *lists)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tagfeatures:", err)
		os.Exit(1)
	}
}

// printWords prints a line of hashes for each line: of the words, a "|", of each two in a row.
func printWords(in io.Reader, out io.Writer) error {
	w := bufio.NewWriter(out)
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), 16<<20)
	for lines.Scan() {
		hashes := tagger.WordHashes(lines.Bytes())
		for _, h := range hashes {
			fmt.Fprintf(w, "%d ", h)
		}
		fmt.Fprint(w, "|")
		for i := 1; i < len(hashes); i++ {
			fmt.Fprintf(w, " %d", tagger.PairHash(hashes[i-1], hashes[i]))
		}
		fmt.Fprintln(w)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("cannot read phrases: %w", err)
	}
	return w.Flush()
}

// printInputs prints the inputs of the tagger for each row.
func printInputs(in io.Reader, out io.Writer, lists string) error {
	table, err := os.ReadFile(lists)
	if err != nil {
		return err
	}
	g, err := tagger.WithLists(table)
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
		inputs := g.Inputs([]byte(row.Text), s)
		b = binary.LittleEndian.AppendUint32(b[:0], uint32(len(inputs)))
		for i := range inputs {
			b = appendInput(b, &inputs[i])
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

func appendInput(b []byte, in *tagger.Input) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(in.Start))
	b = binary.LittleEndian.AppendUint32(b, uint32(in.End))
	b = binary.LittleEndian.AppendUint64(b, in.Hash)
	for _, v := range in.X[:model.Dim] {
		b = binary.LittleEndian.AppendUint16(b, half(v))
	}
	for _, v := range in.X[model.Dim:] {
		b = append(b, byte(v))
	}
	return b
}

// half rounds v to a float16, values too small for one to zero.
func half(v float32) uint16 {
	bits := math.Float32bits(v)
	sign := uint16(bits >> 16 & 0x8000)
	exponent := int(bits>>23&0xff) - 127 + 15
	if exponent <= 0 {
		return sign
	}
	if exponent >= 31 {
		return sign | 0x7bff
	}
	mantissa := bits & 0x7fffff
	return sign + uint16(exponent<<10) + uint16((mantissa+0x1000)>>13)
}
