// Process: one run of the helper, from its start until it is reaped.

package gpu

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A process is a started helper.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File // closing it asks the helper to end
	stdout *os.File
	stderr tail

	gone  chan struct{} // closed when it is dead and reaped; ended then says how
	ended error
	fate  atomic.Int32
}

// The ways in which a process can end.
const (
	attended = iota
	left     // it could not be killed, and its monitor was closed
	reaped
)

// leftBehind counts the helpers of this process that were left and are not dead yet. While there
// is one, a new monitor does not start a helper.
var leftBehind atomic.Int32

// launch starts the program in memory. Its arguments are the time between two polls and the path
// of the driver's library.
func launch(program *os.File, args ...string) (*process, error) {
	stdin, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		stdin.Close()
		ours.Close()
		return nil, err
	}
	p := &process{
		stdin: ours, stdout: out,
		gone: make(chan struct{}),
	}
	p.cmd = &exec.Cmd{
		Args:  append([]string{"kvasir-gpu"}, args...),
		Env:   environment(os.Environ()),
		Stdin: stdin, Stdout: theirs, Stderr: &p.stderr,
		WaitDelay: time.Second,
	}
	runs(p.cmd, program)
	started := make(chan error)
	go p.keep(started)
	err = <-started
	stdin.Close()
	theirs.Close()
	if err != nil {
		ours.Close()
		out.Close()
		return nil, err
	}
	return p, nil
}

// keep starts the helper and reaps it. The parent-death signal comes when the thread that made
// the child ends, not the process (golang.org/issue/27505), so this goroutine keeps its thread as
// long as the helper lives.
func (p *process) keep(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.ended = p.cmd.Wait()
	close(p.gone)
	if p.fate.Swap(reaped) == left {
		leftBehind.Add(-1)
	}
}

// hush stops reading the helper's output. If the helper writes after that, it gets a broken pipe.
func (p *process) hush() {
	p.stdin.Close()
	p.stdout.Close()
}

// goneWithin waits for the end of the process.
func (p *process) goneWithin(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.gone:
		return true
	case <-t.C:
		return false
	}
}

// ask asks the helper to end; demand kills it. An error means that it has ended already.
func (p *process) ask() {
	p.stdin.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
}

func (p *process) demand() { _ = p.cmd.Process.Kill() }

// leave abandons the helper; it stays counted until the system has ended it.
func (p *process) leave() {
	leftBehind.Add(1)
	if !p.fate.CompareAndSwap(attended, left) {
		leftBehind.Add(-1)
	}
}

// death returns how the helper ended: its last line on stderr, if any. The helper must be gone.
func (p *process) death() string {
	how := "exit status 0"
	if p.ended != nil && !errors.Is(p.ended, exec.ErrWaitDelay) {
		how = p.ended.Error()
	}
	if words := p.stderr.lastLine(); words != "" {
		return how + ", " + words
	}
	return how
}

// environment returns the variables that the driver's library and the loader may need. The helper
// does not get the others, such as keys of workers.
func environment(all []string) []string {
	var env []string
	for _, v := range all {
		for _, prefix := range []string{"LD_", "NVIDIA_", "NVML_", "__NV", "CUDA_", "FAKE_NVML_", "PATH=", "HOME=", "TMPDIR="} {
			if strings.HasPrefix(v, prefix) {
				env = append(env, v)
				break
			}
		}
	}
	return env
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	b   []byte // guarded by mu
	all int    // bytes written so far, guarded by mu
}

const maxTail = 1 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all += len(b)
	t.b = append(t.b, b[max(0, len(b)-maxTail):]...)
	t.b = append(t.b[:0], t.b[max(0, len(t.b)-maxTail):]...)
	return len(b), nil
}

func (t *tail) written() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}

// lastLine returns the last line that is not empty, made printable.
func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := bytes.TrimSpace(t.b)
	return plain(string(b[bytes.LastIndexByte(b, '\n')+1:]), 300)
}
