// What tests send to the edge.

// Package edgetest packs bodies as clients do. Where there is a choice, the encoder
// comes from another library than the decoder in package edge.
//
//	body := edgetest.Packed(t, "gzip", text)
package edgetest

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
	brrr "github.com/molecule-man/go-brrr"
)

// Packed is text under a content coding: gzip, deflate, br or zstd.
func Packed(t testing.TB, coding, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	case "br":
		var err error
		if w, err = brrr.NewWriter(&out, 5); err != nil {
			t.Fatal(err)
		}
	case "zstd":
		var err error
		if w, err = zstd.NewWriter(&out); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
