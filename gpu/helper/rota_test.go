//go:build linux && cgo

// The rota and sessions on a fake clock: rounds, hanging calls, GPUs that are lost for a long
// time.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	"kvasir/gpu/snapshot"
)

// A paper records writes, each with its lines and its time.
type paper struct {
	mu     sync.Mutex
	writes []write
}

type write struct {
	at    time.Time
	lines []snapshot.Line
}

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := write{at: time.Now()}
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); {
		var l snapshot.Line
		if err := d.Decode(&l); err != nil {
			return 0, err
		}
		w.lines = append(w.lines, l)
	}
	p.writes = append(p.writes, w)
	return len(b), nil
}

// since removes and returns the recorded writes: milliseconds after start, and the GPUs.
func (p *paper) since(start time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, w := range p.writes {
		var text strings.Builder
		for _, l := range w.lines {
			fmt.Fprint(&text, l.GPU.Index)
		}
		all = append(all, fmt.Sprintf("%d:%s", w.at.Sub(start).Milliseconds(), &text))
	}
	p.writes = nil
	return strings.Join(all, " ")
}

// eight is a host of eight GPUs whose polls take a given time.
type eight struct {
	t     *testing.T
	paper paper
	rota  *rota
	mu    sync.Mutex
	takes [8]func() // guarded by mu
	under [8]int    // guarded by mu: number of polls under way
}

func newEight(t *testing.T) *eight {
	e := &eight{t: t}
	out := newPrinter(&e.paper)
	e.rota = &rota{out: out, start: time.Now(), over: func(time.Time) bool { return false }, lost: make(chan nvml.Return, 1)}
	for i := range 8 {
		e.rota.questions = append(e.rota.questions, &question{every: every, ask: func(time.Time) nvml.Return {
			e.poll(i)
			out.add(snapshot.Line{GPU: &snapshot.GPU{Index: i}})
			return nvml.SUCCESS
		}})
	}
	return e
}

func (e *eight) poll(i int) {
	e.mu.Lock()
	if e.under[i]++; e.under[i] > 1 {
		e.t.Errorf("two polls of GPU %d at once", i)
	}
	take := e.takes[i]
	e.mu.Unlock()
	if take != nil {
		take()
	}
	e.mu.Lock()
	e.under[i]--
	e.mu.Unlock()
}

func (e *eight) set(i int, take func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.takes[i] = take
}

// wrote waits the given number of milliseconds and asserts what was written meanwhile.
func (e *eight) wrote(ms int, want string) {
	e.t.Helper()
	time.Sleep(time.Duration(ms) * time.Millisecond)
	synctest.Wait()
	if got := e.paper.since(e.rota.start); got != want {
		e.t.Errorf("written: %s, want %s", got, want)
	}
}

// A round is one write. A call that hangs delays it once by 5 ms, and silences its own GPU.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEight(t)
		e.rota.begin()
		e.wrote(600, "0:01234567 250:01234567 500:01234567")

		three, six := make(chan struct{}), make(chan struct{})
		e.set(3, func() { <-three })
		e.set(6, func() { <-six })
		e.wrote(500, "755:0124 760:57 1000:012457") // the round waited 5 ms for each of the two
		e.set(3, nil)
		close(three)
		e.wrote(300, "1100:3 1250:0123457")
		e.set(6, nil)
		close(six)
		e.wrote(300, "1400:6 1500:01234567")

		all := make(chan struct{}) // the whole driver hangs
		for i := range 8 {
			e.set(i, func() { <-all })
		}
		e.wrote(5000, "")
		for i := range 8 {
			e.set(i, nil)
		}
		close(all)
		synctest.Wait()
		var late []string // in any order
		for at := range strings.SplitSeq(e.paper.since(e.rota.start), " ") {
			late = append(late, strings.TrimPrefix(at, "6700:"))
		}
		joined := []byte(strings.Join(late, ""))
		if slices.Sort(joined); string(joined) != "01234567" {
			t.Errorf("after the hang: %q", late)
		}
		e.wrote(300, "6790:01234567 7000:01234567") // they came back between two rounds
		e.rota.stop()
	})
}

// With a slow driver, lines wait for others for 5 ms and one poll, and no asker is replaced.
func TestSlowDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEight(t)
		for i := range 8 {
			e.set(i, func() { time.Sleep(3 * time.Millisecond) })
		}
		e.rota.begin()
		e.wrote(300, "9:012 18:345 24:67 259:012 268:345 274:67")
		e.rota.stop()
		if e.rota.turn != 0 {
			t.Errorf("the asker was relieved %d times", e.rota.turn)
		}
	})
}

// The end waits for a call that hangs, and its result is printed.
func TestStopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEight(t)
		hang := make(chan struct{})
		e.set(5, func() { <-hang })
		e.rota.begin()
		e.wrote(100, "5:012346 5:7")
		go func() {
			time.Sleep(time.Second)
			close(hang)
		}()
		e.rota.stop()
		e.wrote(1000, "1100:5")
	})
}

// A GPU that was lost for 20 minutes, and needs a new initialisation of the library, is reported
// again within 4 s of the end of the fault. The other GPU is reported all the time.
func TestLostForLong(t *testing.T) {
	for phase := range 5 {
		synctest.Test(t, func(t *testing.T) {
			mended := time.Now().Add(20*time.Minute + time.Duration(phase)*713*time.Millisecond)
			var initialised time.Time
			var unloaded atomic.Bool
			functions := &mock.Interface{
				InitFunc: func() nvml.Return {
					if unloaded.Load() {
						return nvml.ERROR_LIB_RM_VERSION_MISMATCH
					}
					time.Sleep(300 * time.Millisecond) // as long as drivers take
					initialised = time.Now()
					return nvml.SUCCESS
				},
				ShutdownFunc:               func() nvml.Return { return nvml.SUCCESS },
				SystemGetDriverVersionFunc: func() (string, nvml.Return) { return "570", nvml.SUCCESS },
				DeviceGetCountFunc:         func() (int, nvml.Return) { return 2, nvml.SUCCESS },
				DeviceGetHandleByIndexFunc: func(i int) (nvml.Device, nvml.Return) {
					return &mock.Device{
						GetUUIDFunc:    func() (string, nvml.Return) { return fmt.Sprint("GPU-", i), nvml.SUCCESS },
						GetNameFunc:    func() (string, nvml.Return) { return "", nvml.SUCCESS },
						GetPciInfoFunc: func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, nvml.SUCCESS },
						GetTemperatureFunc: func(nvml.TemperatureSensors) (uint32, nvml.Return) {
							switch {
							case unloaded.Load():
								return 0, nvml.ERROR_UNINITIALIZED
							case i == 1 && initialised.Before(mended):
								return 0, nvml.ERROR_GPU_IS_LOST
							}
							return 50, nvml.SUCCESS
						},
					}, nvml.SUCCESS
				},
			}
			var p paper
			h := &helper{lib: mocked(t, functions), out: newPrinter(&p), interval: every, xids: &xids{all: map[string][]snapshot.Xid{}}}
			ended := make(chan error)
			go func() { ended <- h.sessions() }()
			time.Sleep(time.Until(mended) + 4*time.Second)
			synctest.Wait()
			unloaded.Store(true)
			if err := <-ended; !errors.Is(err, errReplaced) {
				t.Errorf("it ended with %v", err)
			}
			var last [2]time.Time
			for _, w := range p.writes {
				for _, l := range w.lines {
					if l.GPU == nil {
						continue
					}
					i := l.GPU.Index
					if gap := w.at.Sub(last[i]); i == 0 && !last[0].IsZero() && gap > time.Second {
						t.Fatalf("GPU 0 was not told for %v", gap)
					}
					if i == 1 && last[1].IsZero() {
						t.Logf("phase %d: GPU 1 is back after %v", phase, w.at.Sub(mended))
					}
					last[i] = w.at
				}
			}
			if last[1].IsZero() {
				t.Errorf("phase %d: GPU 1 is not back after 4 s", phase)
			}
		})
	}
}

// mocked returns a library with few functions, whose file was replaced.
func mocked(t *testing.T, functions nvml.Interface) *library {
	t.Helper()
	dir := t.TempDir()
	old, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "libnvidia-ml.so.1")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return &library{Interface: functions, file: old, path: path, lookup: func(symbol string) error {
		if symbol == "nvmlDeviceGetTemperature" {
			return nil
		}
		return errors.New("not there")
	}}
}
