// Line: parsing the helper's lines, which are not trusted.

package gpu

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"kvasir/gpu/snapshot"
)

// maxLine bounds a line in bytes; one process takes about 60 bytes.
const maxLine = 256 << 10

// maxGPUs bounds the GPUs of a host; the largest have 16.
const maxGPUs = 128

// errProtocol is returned for a helper of another build.
var errProtocol = errors.New("the helper is of another build of Kvasir")

// lines splits the input into lines, without line ends. A last line without an end was cut off
// and is dropped.
func lines(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	// Large enough for the polls of eight GPUs with some processes in one read.
	s.Buffer(make([]byte, 0, 32<<10), maxLine)
	s.Split(func(data []byte, _ bool) (int, []byte, error) {
		if end := bytes.IndexByte(data, '\n'); end >= 0 {
			return end + 1, data[:end], nil
		}
		return 0, nil, nil
	})
	return s
}

// parse parses one line. It keeps no reference to b, ignores unknown fields, and removes
// impossible values.
func parse(b []byte) (snapshot.Line, error) {
	var l snapshot.Line
	if err := json.Unmarshal(b, &l); err != nil {
		return snapshot.Line{}, fmt.Errorf("cannot read the helper's line %s: %w", quote(b), err)
	}
	if h := l.Hello; h != nil {
		if h.Protocol != snapshot.Protocol {
			return snapshot.Line{}, fmt.Errorf("%w: it speaks protocol %d, this one %d; build both together with make build", errProtocol, h.Protocol, snapshot.Protocol)
		}
		if h.GPUs < 0 || h.GPUs > maxGPUs {
			return snapshot.Line{}, fmt.Errorf("cannot believe the helper's %d GPUs", h.GPUs)
		}
		h.Driver = plain(h.Driver, 64)
	}
	if g := l.GPU; g != nil {
		if g.Index < 0 || g.Index >= maxGPUs {
			return snapshot.Line{}, fmt.Errorf("cannot believe the helper's GPU %d", g.Index)
		}
		tidy(g)
	}
	if t := l.Trouble; t != nil {
		if t.GPU < -1 || t.GPU >= maxGPUs {
			return snapshot.Line{}, fmt.Errorf("cannot believe the helper's GPU %d", t.GPU)
		}
		t.Code, t.Text = plain(t.Code, 64), plain(t.Text, 256)
	}
	return l, nil
}

// tidy removes values that no GPU can have, and makes names printable.
func tidy(g *snapshot.GPU) {
	g.UUID, g.Name, g.PCI = plain(g.UUID, 96), plain(g.Name, 96), plain(g.PCI, 32)
	for _, v := range []struct {
		at   **float64
		most float64
	}{
		{&g.SMUtilization, 100}, {&g.MemoryUtilization, 100},
		{&g.Power, 1e5}, {&g.PowerLimit, 1e5}, {&g.Temperature, 300},
		{&g.SMClock, 1e5}, {&g.SMClockMax, 1e5}, {&g.MemoryClock, 1e5}, {&g.MemoryClockMax, 1e5},
		{&g.NVLinkReceived, 1e14}, {&g.NVLinkSent, 1e14}, {&g.PCIeReceived, 1e14}, {&g.PCIeSent, 1e14},
	} {
		within(v.at, v.most)
	}
	g.ThrottleReasons = few(g.ThrottleReasons, 64)
	reasons := g.ThrottleReasons[:0]
	for _, reason := range g.ThrottleReasons {
		if reason = plain(reason, 64); !slices.Contains(reasons, reason) { // a reason is a label of a metric
			reasons = append(reasons, reason)
		}
	}
	g.ThrottleReasons = reasons
	g.Xids, g.MIG, g.Processes = few(g.Xids, 64), few(g.MIG, 64), few(g.Processes, 1024)
	for i := range g.MIG {
		g.MIG[i].UUID, g.MIG[i].Name = plain(g.MIG[i].UUID, 96), plain(g.MIG[i].Name, 96)
	}
	for i := range g.Processes {
		within(&g.Processes[i].SMUtilization, 100)
	}
	if g.Recovery != nil {
		action := plain(*g.Recovery, 64)
		g.Recovery = &action
	}
}

// few returns at most the first n: for each process /proc is read.
func few[T any](list []T, n int) []T { return list[:min(len(list), n):len(list)] }

// within removes a value that is not between 0 and most.
func within(v **float64, most float64) {
	if *v != nil && (**v < 0 || **v > most) {
		*v = nil
	}
}

// plain makes s printable in a log or a table: at most n bytes, without control characters.
func plain(s string, n int) string {
	if len(s) <= n && strings.IndexFunc(s, unfit) < 0 {
		return s
	}
	s = strings.Map(func(r rune) rune {
		if unfit(r) {
			return '?'
		}
		return r
	}, s[:min(len(s), n)])
	return strings.ToValidUTF8(s, "?")[:min(len(s), n)]
}

func unfit(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// quote quotes the beginning of a line.
func quote(b []byte) string { return fmt.Sprintf("%.80q", b) }
