// Tests of owners: testdata/owner_*.txt list processes, listeners and GPUs, and which worker has
// which; -update writes the answers.

package gpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"kvasir/gpu/snapshot"
)

func TestOwners(t *testing.T) {
	t.Parallel()
	retell(t, "testdata/owner_*.txt", func(t *testing.T) func([]string) string {
		h := newMachine()
		h.t = t
		return h.tell
	})
}

// A machine is a fake /proc, built from a transcript.
type machine struct {
	t       *testing.T
	proc    procFS
	tcp     [2][]string // lines of net/tcp and net/tcp6
	names   map[string]string
	asked   int // number of lookups
	own     []string
	gpus    []GPU
	workers []Worker
	owners  Owners
}

// procFS is a file system with some unreadable directories.
type procFS struct {
	fstest.MapFS
	denied map[string]bool
	opened map[string]int
}

func (p procFS) Open(name string) (fs.File, error) {
	p.opened[name]++
	if p.denied[name] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return p.MapFS.Open(name)
}

func newMachine() *machine {
	h := &machine{
		proc:  procFS{fstest.MapFS{}, map[string]bool{}, map[string]int{}},
		names: map[string]string{},
	}
	h.owners.proc = h.proc
	h.owners.hosts.interfaces = func() (list []net.Addr, err error) {
		for _, a := range h.own {
			list = append(list, &net.IPNet{IP: net.ParseIP(a), Mask: net.CIDRMask(24, 32)})
		}
		return list, nil
	}
	h.owners.hosts.lookup = func(_ context.Context, name string) (list []netip.Addr, err error) {
		h.asked++
		for a := range strings.SplitSeq(h.names[name], ",") {
			if ip, err := netip.ParseAddr(a); err == nil {
				list = append(list, ip)
			}
		}
		if list == nil {
			return nil, errors.New("no such host")
		}
		return list, nil
	}
	return h
}

func (h *machine) tell(words []string) (answer string) {
	switch words[0] {
	case "process": // PID PARENT NAME [SOCKET ...]
		h.process(words[1], words[2], words[3], words[4:])
	case "denied": // the files of PID cannot be read
		h.proc.denied[words[1]+"/fd"] = true
	case "ends": // PID
		delete(h.proc.MapFS, words[1]+"/stat")
	case "listen": // ADDRESS INODE
		h.listen(words[1], words[2])
	case "closed": // nothing listens any more
		h.tcp = [2][]string{}
		h.listen("", "")
	case "address": // of this host
		h.own = words[1:]
	case "name": // NAME ADDRESS,...
		h.names[words[1]] = words[2]
	case "gpu": // UUID [PID ...] [mig=UUID]
		h.gpu(words[1], words[2:])
	case "gpus": // none from now on
		h.gpus = nil
	case "worker": // NAME ADDRESS [GPU ...]
		h.workers = append(h.workers, Worker{words[1], words[2], words[3:]})
	case "workers": // none from now on
		h.workers = nil
	case "find": // some time later, because some changes of a transcript are noticed only then
		time.Sleep(remembered)
		for i, o := range h.owners.Find(h.gpus, h.workers) {
			answer += fmt.Sprintf("%s: GPUs %v, processes %v", h.workers[i].Name, o.GPUs, o.PIDs)
			if o.instances != nil {
				answer += fmt.Sprintf(", MIG %v", o.instances)
			}
			if o.Why != "" {
				answer += ": " + o.Why
			}
			answer += "\n"
		}
	default:
		h.t.Fatalf("no command %q", words)
	}
	return answer
}

func (h *machine) process(pid, parent, name string, sockets []string) {
	h.proc.MapFS[pid+"/stat"] = &fstest.MapFile{
		Data: fmt.Appendf(nil, "%s (%s) S %s 1 1 0 -1 4194560 2959 6497 0 0\n", pid, strings.ReplaceAll(name, "_", " "), parent),
	}
	h.proc.MapFS[pid+"/fd"] = &fstest.MapFile{Mode: fs.ModeDir | 0o500}
	for i, target := range append([]string{"/dev/null", "pipe:[77]", "/dev/nvidia0"}, sockets...) {
		if i > 2 {
			target = "socket:[" + target + "]"
		}
		h.proc.MapFS[fmt.Sprintf("%s/fd/%d", pid, i)] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o700}
	}
}

// listen writes the tables as Linux does: listening sockets first, then others.
func (h *machine) listen(address, inode string) {
	if address != "" {
		at := netip.MustParseAddrPort(address)
		family := 0
		if at.Addr().Is6() {
			family = 1
		}
		h.tcp[family] = append(h.tcp[family], fmt.Sprintf("%4d: %s %s 0A 00000000:00000000 00:00000000 00000000  1000        0 %s 1 0000000000000000 100 0 0 10 0",
			len(h.tcp[family]), socketAddress(at), socketAddress(netip.AddrPortFrom(at.Addr(), 0)), inode))
	}
	for i, name := range []string{"net/tcp", "net/tcp6"} {
		text := "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
		for _, line := range h.tcp[i] {
			text += line + "\n"
		}
		// An established connection has the same local port, and an inode of its own.
		text += "   9: 0100007F:1F40 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 20 4 30 10 -1\n"
		h.proc.MapFS[name] = &fstest.MapFile{Data: []byte(text)}
	}
}

func socketAddress(at netip.AddrPort) string {
	text := ""
	for b := at.Addr().AsSlice(); len(b) > 0; b = b[4:] {
		text += fmt.Sprintf("%08X", binary.NativeEndian.Uint32(b))
	}
	return text + fmt.Sprintf(":%04X", at.Port())
}

func (h *machine) gpu(uuid string, words []string) {
	g := GPU{GPU: snapshot.GPU{Index: len(h.gpus), UUID: uuid}, State: OK}
	for _, w := range words {
		if uuid, ok := strings.CutPrefix(w, "mig="); ok {
			g.MIG = append(g.MIG, snapshot.Instance{UUID: uuid})
		} else {
			pid, _ := strconv.Atoi(w)
			g.Processes = append(g.Processes, snapshot.Process{PID: pid})
		}
	}
	h.gpus = append(h.gpus, g)
}

// vllmMachine returns a machine with one worker that has a GPU.
func vllmMachine(t *testing.T) *machine {
	h := newMachine()
	h.t = t
	for _, line := range []string{
		"process 1 0 systemd", "process 100 1 vllm 500", "process 101 100 VLLM::EngineCor",
		"listen 127.0.0.1:8000 500", "name here 127.0.0.1", "gpu GPU-a 101", "worker a here:8000",
	} {
		h.tell(strings.Fields(line))
	}
	return h
}

// TestOwnersAreRemembered: processes are read again only when the processes on GPUs or the
// listeners change, or after half a minute. Listeners are read every 5 s; a name is looked up
// once a minute.
func TestOwnersAreRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := vllmMachine(t)
		find := func(why string, files, tables int) {
			t.Helper()
			f, n := h.proc.opened["101/fd"], h.proc.opened["net/tcp6"]
			h.owners.Find(h.gpus, h.workers)
			if f, n = h.proc.opened["101/fd"]-f, h.proc.opened["net/tcp6"]-n; f != files || n != tables {
				t.Errorf("%s: files of a process are read %d times, listeners %d times, want %d and %d", why, f, n, files, tables)
			}
		}
		find("at first", 1, 1)
		for i := range 29 {
			time.Sleep(time.Second)
			find(fmt.Sprintf("after %d s", i+1), 0, boolToInt((i+1)%5 == 0))
		}
		time.Sleep(time.Second)
		find("after 30 s", 1, 1)
		h.listen("127.0.0.1:9000", "501")
		time.Sleep(5 * time.Second)
		find("a new listener on nobody's port", 0, 1)
		h.listen("0.0.0.0:8000", "502")
		time.Sleep(5 * time.Second)
		find("a new listener on a worker's port", 1, 1)
		h.gpus[0].Processes = append(h.gpus[0].Processes, snapshot.Process{PID: 102})
		find("a new process", 1, 1)
		h.tell(strings.Fields("worker b here:8001"))
		find("a new worker", 1, 1)
		find("nothing new", 0, 0)
		if h.asked != 1 {
			t.Errorf("the name was looked up %d times in a minute", h.asked)
		}
	})
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestSlowNames: a resolver that does not answer delays a round by at most half a second, and its
// earlier answers stay valid.
func TestSlowNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := vllmMachine(t)
		found := func() (owned Owned, took time.Duration) {
			begin := time.Now()
			owned = h.owners.Find(h.gpus, h.workers)[0]
			return owned, time.Since(begin)
		}
		if o, _ := found(); len(o.GPUs) != 1 {
			t.Fatalf("not found: %+v", o)
		}
		h.owners.hosts.lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for i := range 3 {
			h.tell([]string{"worker", "other", fmt.Sprintf("other%d:80", i)})
		}
		time.Sleep(time.Minute)
		o, took := found()
		if len(o.GPUs) != 1 || took != lookupLimit {
			t.Errorf("after %v: %+v", took, o)
		}
		time.Sleep(time.Second)
		if o, took = found(); len(o.GPUs) != 1 || took != lookupLimit { // the other names' turn
			t.Errorf("after %v: %+v", took, o)
		}
	})
}

// TestManyConnections: after a long row of sockets that do not listen, the rest of the table is
// not read.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	line := "   9: 0100007F:1F40 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 20 4 30 10 -1\n"
	listens := strings.Replace(line, " 01 ", " 0A ", 1)
	for _, tt := range []struct{ others, want int }{{255, 1}, {256, 0}, {1 << 20, 0}} {
		r := &repeated{line: line, left: tt.others, last: listens}
		if got := readListeners(nil, r, []uint16{8000}); len(got) != tt.want {
			t.Errorf("behind %d others: %v", tt.others, got)
		}
		if r.read > 64<<10 {
			t.Errorf("%d bytes were read", r.read)
		}
	}
}

// repeated is a table with one line repeated, and a different last line.
type repeated struct {
	line, last string
	left, read int
}

func (r *repeated) Read(p []byte) (n int, err error) {
	for n+len(r.line) <= len(p) && r.left >= 0 {
		line := r.line
		if r.left == 0 {
			line = r.last
		}
		n += copy(p[n:], line)
		r.left--
	}
	r.read += n
	if n == 0 {
		return 0, fs.ErrClosed
	}
	return n, nil
}

// TestRealProcesses finds a listening process through its child, which the test puts on a GPU,
// but not through its parent, the test itself.
func TestRealProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc here")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), program, "-test.run=^TestActAsServer$", "-test.v=false")
	server.Env = append(os.Environ(), "OWNER_TEST=server")
	server.Stderr = os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		_ = in.Close()    // then it ends, after its child
		_ = server.Wait() // it was killed if the test failed
	})
	defer end()
	var port, child int
	if _, err := fmt.Fscan(out, &port, &child); err != nil {
		t.Fatal(err)
	}

	gpus := []GPU{{GPU: snapshot.GPU{Processes: []snapshot.Process{{PID: os.Getpid()}}}}, {
		GPU: snapshot.GPU{Index: 1, Processes: []snapshot.Process{{PID: child}}},
	}}
	workers := []Worker{{Name: "a", Address: fmt.Sprintf("localhost:%d", port)}, {Name: "b", Address: "localhost:1"}}
	var owners Owners
	owned := owners.Find(gpus, workers)
	if !slices.Equal(owned[0].GPUs, []int{1}) || !slices.Equal(owned[0].PIDs, []int{child}) || owned[0].Why != "" {
		t.Errorf("the server has %+v; its child is %d", owned[0], child)
	}
	if owned[1].GPUs != nil || owned[1].Why != "nothing on this host listens on localhost:1" {
		t.Errorf("nobody has %+v", owned[1])
	}
	end()
	owners.read = time.Time{} // 5 s later
	if owned = owners.Find(gpus, workers); owned[0].GPUs != nil || !strings.HasPrefix(owned[0].Why, "nothing on this host listens") {
		t.Errorf("a server that has ended has %+v", owned[0])
	}
}

// TestActAsServer is not a test, but the code of TestRealProcesses's processes: one that listens,
// and its child. Both run until their standard input ends.
func TestActAsServer(t *testing.T) {
	switch os.Getenv("OWNER_TEST") {
	case "server":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestActAsServer$")
		child.Env = append(os.Environ(), "OWNER_TEST=child")
		in, err := child.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Println(l.Addr().(*net.TCPAddr).Port, child.Process.Pid)
		_, _ = io.Copy(io.Discard, os.Stdin) // until it ends
		_ = in.Close()
		_ = child.Wait()
	case "child":
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

func FuzzParseSocket(f *testing.F) {
	f.Add([]byte("   0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 640 1 0 100 0 0 10 0"))
	f.Add([]byte("   1: 00000000000000000000000001000000:1F40 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 18446744073709551615"))
	f.Add([]byte("   1: 0100007:1F40 0 0A 0 0 0 0 0 1"))
	f.Fuzz(func(t *testing.T, line []byte) {
		l, listens, ok := parseSocket(line)
		if listens && ok && !l.at.IsValid() {
			t.Errorf("%q: %v", line, l)
		}
	})
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("3436 (python3) R 3411 3411 26193 0 -1 4194304"))
	f.Add([]byte("12 (a) b) (c)) S 1"))
	f.Add([]byte("12 ) S ("))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, parent, ok := parseStat(b); ok && parent < 0 {
			t.Errorf("%q: parent %d", b, parent)
		}
	})
}

func BenchmarkOwners(b *testing.B) {
	h := newMachine()
	for i := range 8 {
		pid := 1000 * (i + 1)
		h.tell(strings.Fields(fmt.Sprintf("process %d 1 vllm %d", pid, pid)))
		h.tell(strings.Fields(fmt.Sprintf("process %d %d engine", pid+1, pid)))
		h.tell(strings.Fields(fmt.Sprintf("listen 0.0.0.0:%d %d", 8000+i, pid)))
		h.tell(strings.Fields(fmt.Sprintf("gpu GPU-%d %d", i, pid+1)))
		h.tell(strings.Fields(fmt.Sprintf("worker w%d 127.0.0.1:%d", i, 8000+i)))
	}
	b.ReportAllocs()
	for b.Loop() {
		if o := h.owners.Find(h.gpus, h.workers); len(o[7].GPUs) != 1 {
			b.Fatal(o)
		}
	}
}
