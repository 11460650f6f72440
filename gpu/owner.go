// Owner: which GPU serves which worker.

package gpu

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Worker is a worker whose GPUs are to be found.
type Worker struct {
	Name    string
	Address string   // host:port of its URL
	GPUs    []string // configured: NVML's index, UUID, or the UUID of a MIG device; empty: find them
}

// Owned is the GPUs and processes found for a worker.
type Owned struct {
	GPUs []int  // positions in the list of GPUs passed to Find, ascending
	PIDs []int  // its processes on GPUs, ascending; empty: unknown
	Why  string // why no GPU was found, or what is wrong with the configured ones

	instances []string // UUIDs of the configured MIG devices
}

// Owners finds which GPU serves which worker. The zero value is ready. Not safe
// for concurrent use.
//
// If none are configured, a worker has the GPUs of all processes that descend from the process
// that listens on its address: vLLM's API server is the parent of its engine cores and tensor
// parallel workers, SGLang's launch_server of its schedulers, trtllm-serve of its MPI children. A
// common shell or session proves nothing and is not considered, because two workers can share
// those too.
//
// Reading is bounded. /proc/net/tcp and tcp6 are read up to the end of their listening sockets,
// every 5 s and when the processes on GPUs change. The parents and open files of those processes
// and of their ancestors are read when the processes or a worker's listener change, and every
// half minute.
type Owners struct {
	proc  fs.FS // nil: /proc
	hosts hosts

	seed      maphash.Seed
	known     uint64     // hash of the inputs of owned, without the listeners
	listeners []listener // listening sockets on workers' ports
	read      time.Time  // when the listeners were read
	at        time.Time  // when owned was computed; zero: never
	owned     []Owned
}

// remembered is how long an answer is reused while the inputs that are checked each time do not
// change. Other inputs (parents, permissions) are read again after that.
//
// readEvery is how long the list of listeners is reused. Reading it, with the whole table of
// connections after it, took 2.5 ms on a host with 512 Ki buckets: done every second, that would
// be 0.25 % of a core.
const (
	remembered = 30 * time.Second
	readEvery  = 5 * time.Second
)

// Find returns for each worker, in their order, which of the GPUs serve it. It may be called
// every second: it spends at most half a second on name lookups, and caches them. The caller must
// not change the result, which is valid until the next call.
func (o *Owners) Find(gpus []GPU, workers []Worker) []Owned {
	if o.at.IsZero() {
		o.seed = maphash.MakeSeed()
		if o.proc == nil {
			o.proc = os.DirFS("/proc")
		}
	}
	now := time.Now()
	seen := usersOf(gpus)
	found := make([]target, len(workers))
	if len(gpus) > 0 {
		o.hosts.begin(now)
		for i, w := range workers {
			found[i] = o.hosts.target(now, w.Address, len(seen) > 0)
		}
	}
	key := o.key(gpus, workers, found)
	changed := o.at.IsZero() || key != o.known || now.Sub(o.at) >= remembered
	if changed || now.Sub(o.read) >= readEvery {
		o.read = now
		var listeners []listener
		if len(seen) > 0 {
			listeners = appendListeners(nil, o.proc, ports(found))
		}
		changed = changed || !slices.Equal(listeners, o.listeners)
		o.listeners = listeners
	}
	if changed {
		o.known, o.at = key, now
		o.owned = o.find(gpus, seen, workers, found)
	}
	return o.owned
}

// key hashes the inputs that are checked each time: all except the listeners.
func (o *Owners) key(gpus []GPU, workers []Worker, found []target) uint64 {
	var h maphash.Hash
	h.SetSeed(o.seed)
	number := func(n uint64) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], n)
		_, _ = h.Write(b[:]) // never fails
	}
	text := func(s string) {
		number(uint64(len(s)))
		_, _ = h.WriteString(s)
	}
	for _, g := range gpus {
		number(uint64(g.Index))
		text(g.UUID)
		for _, m := range g.MIG {
			text(m.UUID)
		}
		number(uint64(len(g.Processes)))
		for _, p := range g.Processes {
			number(uint64(p.PID))
		}
	}
	for i, w := range workers {
		text(w.Address)
		text(found[i].why)
		for _, at := range found[i].at {
			a := at.Addr().As16()
			_, _ = h.Write(a[:])
		}
		number(uint64(len(w.GPUs)))
		for _, g := range w.GPUs {
			text(g)
		}
	}
	return h.Sum64()
}

func (o *Owners) find(gpus []GPU, seen []user, workers []Worker, found []target) []Owned {
	sockets := make([][]uint64, len(workers))
	all := map[uint64]bool{}
	for i := range workers {
		sockets[i] = reached(o.listeners, found[i].at)
		for _, inode := range sockets[i] {
			all[inode] = true
		}
	}
	table := newRelatives(o.proc, all)
	owned := make([]Owned, len(workers))
	for i, w := range workers {
		pids, why := table.from(sockets[i], seen)
		switch {
		case len(gpus) == 0:
			why = "there is no GPU on this host"
		case found[i].why != "":
			why = found[i].why
		case len(seen) == 0:
			why = "the driver tells of no process on a GPU"
		case len(sockets[i]) == 0:
			why = "nothing on this host listens on " + w.Address
		case why != "":
		case len(pids) == 0:
			why = "no process on a GPU comes from the one that listens on " + w.Address + "; set workers[].gpus"
		}
		if len(w.GPUs) > 0 {
			owned[i] = configured(gpus, w.GPUs)
		} else {
			owned[i] = Owned{Why: why}
			for _, u := range seen {
				if slices.Contains(pids, u.pid) {
					owned[i].GPUs = append(owned[i].GPUs, u.gpu)
				}
			}
			owned[i].GPUs = slices.Compact(owned[i].GPUs)
		}
		owned[i].PIDs = pids
	}
	return owned
}

// configured finds GPUs by their names in the configuration.
func configured(gpus []GPU, names []string) (o Owned) {
	var missing []string
	for _, name := range names {
		at := slices.IndexFunc(gpus, func(g GPU) bool { return called(g, name) })
		if at < 0 {
			missing = append(missing, strconv.Quote(name))
			continue
		}
		o.GPUs = append(o.GPUs, at)
		if len(name) > 3 && strings.EqualFold(name[:3], "MIG") {
			o.instances = append(o.instances, name)
		}
	}
	slices.Sort(o.GPUs)
	o.GPUs = slices.Compact(o.GPUs)
	if len(missing) > 0 {
		o.Why = fmt.Sprintf("there is no GPU %s on this host", strings.Join(missing, " or "))
	}
	return o
}

// called reports whether name means this GPU: its index, its UUID, or the UUID of one of its MIG
// devices. Drivers before 470 wrote the latter as MIG-GPU-UUID/instance/instance.
func called(g GPU, name string) bool {
	if n, err := strconv.Atoi(name); err == nil {
		return g.Index == n
	}
	if g.UUID != "" && strings.EqualFold(g.UUID, name) {
		return true
	}
	for _, m := range g.MIG {
		if m.UUID != "" && strings.EqualFold(m.UUID, name) {
			return true
		}
	}
	if len(name) > 4 && strings.EqualFold(name[:4], "MIG-") {
		uuid, _, ok := strings.Cut(name[4:], "/")
		return ok && g.UUID != "" && strings.EqualFold(uuid, g.UUID)
	}
	return false
}

// A user is a process on a GPU.
type user struct {
	gpu, pid int // position of the GPU; process id
}

func usersOf(gpus []GPU) (seen []user) {
	for i, g := range gpus {
		for _, p := range g.Processes {
			seen = append(seen, user{i, p.PID})
		}
	}
	slices.SortFunc(seen, func(a, b user) int { return cmp.Or(a.gpu-b.gpu, a.pid-b.pid) })
	return slices.Compact(seen)
}
