// Processes: those on GPUs and their ancestors, and which of them listen for a worker.

package gpu

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Bounds on reading /proc.
const (
	maxAncestors = 64
	maxFiles     = 64 << 10 // open files of one process
)

// holders hold listening sockets for other processes, so their sockets do not tell which process
// answers, and half of a host's processes descend from them. systemd passes sockets to units;
// sshd listens for forwarded ports.
var holders = []string{"systemd", "init", "supervisord", "circusd", "inetd", "xinetd", "sshd", "sshd-session"}

// A relative is a process on a GPU, or an ancestor of one.
type relative struct {
	pid, parent int
	sockets     []uint64 // wanted sockets that it has open, ascending
	denied      bool     // its open files cannot be read
}

// relatives reads each process once.
type relatives struct {
	proc   fs.FS
	wanted map[uint64]bool // sockets
	known  map[int]*relative
}

func newRelatives(proc fs.FS, wanted map[uint64]bool) *relatives {
	return &relatives{proc, wanted, map[int]*relative{}}
}

// at returns the process with that id; nil: none.
func (t *relatives) at(pid int) *relative {
	p, ok := t.known[pid]
	if !ok {
		p = t.read(pid)
		t.known[pid] = p
	}
	return p
}

func (t *relatives) read(pid int) *relative {
	dir := strconv.Itoa(pid)
	file, err := t.proc.Open(dir + "/stat")
	if err != nil {
		return nil
	}
	var b [1024]byte // a line has about 350 bytes
	n, err := io.ReadFull(file, b[:])
	_ = file.Close() // it was only read
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	name, parent, ok := parseStat(b[:n])
	if !ok {
		return nil
	}
	p := &relative{pid: pid, parent: parent}
	if !slices.Contains(holders, string(name)) {
		p.sockets, err = t.socketsOf(dir + "/fd")
		p.denied = errors.Is(err, fs.ErrPermission)
	}
	return p
}

// parseStat reads the name and the parent from /proc/PID/stat. The name may contain spaces and
// parentheses, so it ends at the last parenthesis (proc(5)).
func parseStat(b []byte) (name []byte, parent int, ok bool) {
	begin, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if begin < 0 || end < begin {
		return nil, 0, false
	}
	fields := bytes.Fields(b[end+1:])
	if len(fields) < 2 {
		return nil, 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return b[begin+1 : end], parent, err == nil && parent >= 0
}

// socketsOf returns the wanted sockets among the open files in dir.
func (t *relatives) socketsOf(dir string) (sockets []uint64, err error) {
	file, err := t.proc.Open(dir)
	if err != nil {
		return nil, err
	}
	defer file.Close() // it was only read
	list, ok := file.(fs.ReadDirFile)
	if !ok {
		return nil, fs.ErrInvalid
	}
	for range maxFiles / 1024 {
		entries, err := list.ReadDir(1024)
		for _, e := range entries {
			link, err := fs.ReadLink(t.proc, dir+"/"+e.Name())
			if err != nil {
				if errors.Is(err, fs.ErrPermission) {
					return nil, err
				}
				continue // closed meanwhile
			}
			if inode, ok := parseSocketLink(link); ok && t.wanted[inode] {
				sockets = append(sockets, inode)
			}
		}
		if err != nil || len(entries) == 0 {
			break // io.EOF, or the process ended
		}
	}
	slices.Sort(sockets)
	return slices.Compact(sockets), nil
}

func parseSocketLink(link string) (inode uint64, ok bool) {
	number, ok := strings.CutPrefix(link, "socket:[")
	number, ok2 := strings.CutSuffix(number, "]")
	inode, err := strconv.ParseUint(number, 10, 64)
	return inode, ok && ok2 && err == nil
}

// A claim is a process on a GPU together with its holder: the nearest process that listens,
// itself or an ancestor.
type claim struct {
	pid     int
	holder  *relative
	through []*relative // the processes from itself up to the holder, both included
}

// claim returns the claim of a process on a GPU; without a holder, holder is nil. denied is a
// process on the way whose files cannot be read.
func (t *relatives) claim(pid int, sockets []uint64) (c claim, denied int) {
	c.pid = pid
	p := t.at(pid)
	for range maxAncestors {
		if p == nil {
			break
		}
		if p.denied && denied == 0 {
			denied = p.pid
		}
		c.through = append(c.through, p)
		if slices.ContainsFunc(p.sockets, func(s uint64) bool { return slices.Contains(sockets, s) }) {
			c.holder = p
			return c, 0
		}
		if p.parent == 0 {
			break
		}
		p = t.at(p.parent)
	}
	return c, denied
}

// from returns the processes on GPUs that descend from a process with one of the sockets,
// ascending. If there are none, why gives the reason, if one is known.
func (t *relatives) from(sockets []uint64, seen []user) (pids []int, why string) {
	if len(sockets) == 0 {
		return nil, ""
	}
	var claims []claim
	absent, denied := 0, 0
	for _, u := range seen {
		c, cannot := t.claim(u.pid, sockets)
		switch {
		case c.holder != nil:
			claims = append(claims, c)
		case len(c.through) == 0 && absent == 0:
			absent = u.pid
		case denied == 0:
			denied = cannot
		}
	}
	claims = certain(claims, t)
	for _, c := range claims {
		if other := slices.ContainsFunc(c.holder.sockets, func(s uint64) bool { return !slices.Contains(sockets, s) }); other {
			return nil, fmt.Sprintf("process %d listens for other workers as well; set workers[].gpus", c.holder.pid)
		}
		pids = append(pids, c.pid)
	}
	slices.Sort(pids)
	pids = slices.Compact(pids)
	switch {
	case len(pids) > 0:
	case denied != 0:
		why = fmt.Sprintf("the open files of process %d cannot be read; run Kvasir as its user or with CAP_SYS_PTRACE, or set workers[].gpus", denied)
	case absent != 0:
		why = fmt.Sprintf("process %d, which the driver tells of, is not to be seen from here: it counts processes as the host does; share the host's (--pid=host), or set workers[].gpus", absent)
	}
	return pids, why
}

// certain drops claims that may belong to another server. If a process inherited the socket from
// its parent and uses a GPU, that process is the server, and other children of the parent may be
// unrelated.
func certain(claims []claim, t *relatives) []claim {
	above := map[*relative]bool{}
	for _, c := range claims {
		p := c.holder
		for range maxAncestors {
			if p = t.at(p.parent); p == nil {
				break
			}
			above[p] = true
		}
	}
	return slices.DeleteFunc(claims, func(c claim) bool { return above[c.holder] && len(c.through) > 1 })
}
