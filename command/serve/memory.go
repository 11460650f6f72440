// Memory: how much of it there is for the process, and for bodies of requests.

package serve

import (
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// limitMemory makes the collector work harder when 90 % of the control
// group's memory are in use, instead of being killed at 100 %. It gives the
// limit that it set, in bytes, or 0: there is none, or GOMEMLIMIT says
// something already.
//
// memlimit.Set does the same and more: it takes an empty GOMEMLIMIT for a
// limit, and listens to a variable of its own, AUTOMEMLIMIT, which nobody here
// has asked for.
func limitMemory() int64 {
	group, err := memlimit.FromCgroup()
	if err != nil || group == 0 || group > math.MaxInt64 || os.Getenv("GOMEMLIMIT") != "" {
		return 0
	}
	limit := int64(group) / 10 * 9
	debug.SetMemoryLimit(limit)
	return limit
}

// machineMemory is the memory of this machine, in bytes; 4 GiB where it cannot
// be read.
func machineMemory() int64 {
	n, err := memlimit.FromSystem()
	if err != nil || n == 0 || n > math.MaxInt64 {
		return 4 << 30
	}
	return int64(n)
}

// bodyMemory is how much memory bodies of requests may take together where the
// configuration does not say it: a quarter of the collector's limit, or of the
// machine's memory where there is no limit (math.MaxInt64), and never less than
// least. All are bytes.
func bodyMemory(limit, machine, least int64) int64 {
	if limit == math.MaxInt64 {
		limit = machine
	}
	return max(limit/4, least)
}
