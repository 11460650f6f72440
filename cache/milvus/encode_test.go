package milvus

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"kvasir/cache"
)

func codecOf(t testing.TB) *codec {
	t.Helper()
	c, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestEncode(t *testing.T) {
	c := codecOf(t)
	for name, v := range map[string]struct {
		plain string
		form  byte // 0: does not fit
	}{
		"nothing":         {"", formPlain},
		"short":           {"What is it?", formPlain},
		"characters":      {"日本\x00語", formPlain},
		"no UTF-8":        {"\xff", formZstd},
		"repeats":         {strings.Repeat("again ", 1000), formZstd},
		"very long":       {strings.Repeat("again ", 1<<20), formZstd},
		"noise":           {string(noise(49000)), formZstd},
		"too much noise":  {string(noise(50000)), 0},
		"too long":        {strings.Repeat("x", maxPlain+1), 0},
		"hard to pack":    {string(printable(100)), formPlain},
		"a field's bytes": {string(printable(maxVarChar - 1)), formPlain},
		"one more":        {string(printable(maxVarChar)), 0},
		"zeros and noise": {strings.Repeat("0", 100) + string(printable(100)), formZstd},
	} {
		got, ok := c.encode([]byte(v.plain))
		if ok != (v.form != 0) || ok && got[0] != v.form || len(got) > maxVarChar || !utf8.ValidString(got) {
			t.Errorf("%s: %t, %d bytes, %.10q", name, ok, len(got), got)
		}
		if plain, err := c.decode(got); ok && (err != nil || string(plain) != v.plain) {
			t.Errorf("%s: decoded to %d bytes, %v", name, len(plain), err)
		}
	}
}

// printable returns random ASCII letters, which base64 makes longer.
func printable(n int) []byte {
	b := noise(n)
	for i := range b {
		b[i] = ' ' + b[i]%95
	}
	return b
}

// A few bytes that claim to decompress to gigabytes.
func TestDecodeIsBounded(t *testing.T) {
	c := codecOf(t)
	bomb := c.in.EncodeAll(make([]byte, 4*maxPlain), nil)
	if got, err := c.decode("z" + base64.RawStdEncoding.EncodeToString(bomb)); err == nil {
		t.Errorf("decoded %d bytes of %d", len(got), len(bomb))
	}
}

func TestRows(t *testing.T) {
	c := codecOf(t)
	var vector [cache.Dim]float32
	vector[7] = 1
	e := entryOf("text", "answer")
	r, err := c.row(e, &vector)
	if err != nil || !r.semantic || r.vector[7] != 1 || r.vector[0] != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	got, err := c.entry(r, nil, time.Now())
	if err != nil || got.Text != "text" || string(got.Answer) != "answer" || got.ID != e.ID || got.Expires.Sub(e.Expires).Abs() > time.Second {
		t.Errorf("%+v, %v", got, err)
	}
	if r, err := c.row(e, nil); err != nil || r.semantic || r.vector[0] != 1 {
		t.Errorf("without a vector: %+v, %v", r, err)
	}

	long := string(noise(60000))
	r, err = c.row(entryOf(long, "answer"), &vector)
	if err != nil || r.semantic || r.text != "#" {
		t.Fatalf("a text that is not kept: %.20q, %t, %v", r.text, r.semantic, err)
	}
	if got, err := c.entry(r, []byte(long), time.Now()); err != nil || got.Text != long {
		t.Errorf("asked for it: %v", err)
	}
	if got, err := c.entry(r, []byte("another"), time.Now()); err == nil {
		t.Errorf("asked for another: %+v", got)
	}

	for name, change := range map[string]func(*cache.Entry){
		"tenant":      func(e *cache.Entry) { e.Tenant = strings.Repeat("x", maxName+1) },
		"model":       func(e *cache.Entry) { e.Model = strings.Repeat("x", maxName+1) },
		"answer":      func(e *cache.Entry) { e.Answer = noise(60000) },
		"not UTF-8":   func(e *cache.Entry) { e.Tenant = "\xff" },
		"model UTF-8": func(e *cache.Entry) { e.Model = "\xff" },
	} {
		e := entryOf("text", "answer")
		change(e)
		if r, err := c.row(e, nil); err == nil || errors.Is(err, cache.ErrTooLarge) == strings.Contains(name, "UTF-8") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// The key distinguishes scopes and texts wherever the boundary between them lies.
func TestKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, scope := range []cache.Scope{{}, {1}, {0, 1}, {15: 1}} {
		for _, text := range []string{"", "\x00", "a", "A", "a ", "\x01"} {
			key := keyOf(scope, []byte(text))
			if seen[key] || len(key) != 64 {
				t.Errorf("%v %q: %s", scope, text, key)
			}
			seen[key] = true
		}
	}
}

func FuzzEncode(f *testing.F) {
	f.Add([]byte("What is it?"))
	f.Add([]byte("\xff\x00"))
	f.Add(bytes.Repeat([]byte("again "), 1000))
	c := codecOf(f)
	f.Fuzz(func(t *testing.T, plain []byte) {
		encoded, ok := c.encode(plain)
		if !ok {
			return
		}
		if len(encoded) > maxVarChar || !utf8.ValidString(encoded) {
			t.Fatalf("%d bytes, UTF-8: %t", len(encoded), utf8.ValidString(encoded))
		}
		if got, err := c.decode(encoded); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("decoded %q of %q: %v", got, plain, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	c := codecOf(f)
	good, _ := c.encode(bytes.Repeat([]byte("again "), 1000))
	for _, seed := range []string{"", "=", "=text", "#", "z", "z!!", good, good[:len(good)-3]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, encoded string) {
		plain, err := c.decode(encoded)
		if err == nil && len(plain) > maxPlain {
			t.Fatalf("%d bytes", len(plain))
		}
	})
}

// An answer of 6 kB, in both directions: the only cost that grows with it is its compression.
func BenchmarkRow(b *testing.B) {
	c := codecOf(b)
	e := entryOf("What is a capital?", strings.Repeat("A capital is a city with a government. It is 1 of many. ", 100))
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.row(e, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		r, err := c.row(e, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.entry(r, nil, time.Now()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
