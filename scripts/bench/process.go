//go:build linux

// Child processes: start, wait until ready, memory, stop.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is one running child. stop ends it and waits for it.
type process struct {
	name    string
	cmd     *exec.Cmd
	log     string        // file with its standard output and error
	started time.Time     // just before exec
	done    chan struct{} // closed when it has ended
}

// startProcess runs argv with its output in dir/name.log.
func startProcess(dir, name string, env []string, argv ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	defer log.Close()
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(os.Environ(), env...)
	// Nothing is left behind when bench itself is killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	go p.wait()
	return p, nil
}

func (p *process) wait() {
	_ = p.cmd.Wait() // its log says how it ended; here it matters only that it ended
	close(p.done)
}

// stop asks the process to end, and kills it after three seconds.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(3 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// ready calls probe until it succeeds, the process has died or the time is up, with a pause of
// every between two calls.
func (p *process) ready(ctx context.Context, limit, every time.Duration, probe func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := probe()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("cannot use %s: it ended at once; its log ends: %s", p.name, p.logEnd())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cannot use %s: not ready after %v: %w; its log ends: %s", p.name, limit, err, p.logEnd())
		}
	}
}

func (p *process) logEnd() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-600):]))
}

// rss is the resident memory, in bytes, of the process and its children.
func (p *process) rss() (int64, error) {
	return treeRSS(p.cmd.Process.Pid)
}

func treeRSS(pid int) (int64, error) { return ofTree(pid, "status", parseRSS) }

// cpu is the processor time that the process and its children have used so far, in steps of 10 ms a
// process.
func (p *process) cpu() (time.Duration, error) { return ofTree(p.cmd.Process.Pid, "stat", parseCPU) }

// ofTree is the sum of what parse finds in the file of a process and of its children.
func ofTree[N int64 | time.Duration](pid int, file string, parse func(text string) (N, error)) (N, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, fmt.Errorf("cannot read %s of process %d: %w", file, pid, err)
	}
	total, err := parse(string(text))
	if err != nil {
		return 0, fmt.Errorf("cannot read %s of process %d: %w", file, pid, err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, fmt.Errorf("cannot read children of process %d: %w", pid, err)
	}
	for _, field := range strings.Fields(string(children)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			return 0, fmt.Errorf("cannot read children of process %d: %w", pid, err)
		}
		n, err := ofTree(child, file, parse)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// parseCPU finds user and system time in the text of /proc/PID/stat, in which the name of the
// program may have spaces and parentheses.
func parseCPU(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("cannot parse %q", stat)
	}
	var total time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("cannot parse %q", stat)
		}
		total += time.Duration(n) * jiffy
	}
	return total, nil
}

// parseRSS finds VmRSS in the text of /proc/PID/status and returns bytes.
func parseRSS(status string) (int64, error) {
	for line := range strings.Lines(status) {
		rest, ok := strings.CutPrefix(line, "VmRSS:")
		if !ok {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) != 2 || fields[1] != "kB" {
			return 0, fmt.Errorf("cannot parse %q", line)
		}
		kib, err := strconv.ParseInt(fields[0], 10, 64)
		return kib << 10, err
	}
	return 0, errors.New("no VmRSS line")
}

// settledRSS waits until the resident memory has changed by less than 1 % during window, which
// means that the garbage collector has returned what it can, and returns it. After limit it
// returns the latest value: a process that never settles is not an error.
func (p *process) settledRSS(ctx context.Context, window, limit time.Duration) (int64, error) {
	const every = 200 * time.Millisecond
	var seen []int64
	for start := time.Now(); ; {
		n, err := p.rss()
		if err != nil {
			return 0, err
		}
		seen = append(seen, n)
		last := seen[max(0, len(seen)-int(window/every)):]
		spread := quantile(append([]int64(nil), last...), 1) - quantile(append([]int64(nil), last...), 0)
		settled := len(last) == int(window/every) && spread*100 < n
		if settled || time.Since(start) > limit {
			return n, nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(every):
		}
	}
}

// freeAddress is a loopback address whose port was free a moment ago.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// findTool looks in PATH, and in Debian's directory of servers, which is not in every user's PATH.
func findTool(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + name)
}

// raiseFileLimit lifts the soft limit of open files to the hard one, here and
// in the children (Go gives a child the old soft limit unless it was set).
func raiseFileLimit() error {
	limit, err := fileLimit()
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return fmt.Errorf("cannot raise the limit of open files to %d: %w", limit, err)
	}
	return nil
}

func fileLimit() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("cannot read the limit of open files: %w", err)
	}
	return limit.Max, nil
}
