// Memory: the limit that the control group sets, told to the garbage collector.

package serve

import (
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// limitMemory makes the collector work harder when 90 % of the control
// group's memory are in use, instead of being killed at 100 %. It gives the
// limit it set, or 0: there is none, or GOMEMLIMIT says something already.
func limitMemory(root fs.FS, goMemLimit string) int64 {
	limit := groupMemory(root)
	if limit == 0 || goMemLimit != "" {
		return 0
	}
	limit = limit / 10 * 9
	debug.SetMemoryLimit(limit)
	return limit
}

// bodyMemory is how much memory request bodies may take together when the
// configuration does not say it: a quarter of the collector's limit, or of the
// machine's memory where there is none, and never less than least. All are bytes.
func bodyMemory(root fs.FS, limit, least int64) int64 {
	if limit == math.MaxInt64 {
		limit = machineMemory(root)
	}
	return max(limit/4, least)
}

// machineMemory is the memory of this machine, in bytes; 4 GiB where it cannot be read.
func machineMemory(root fs.FS) int64 {
	data, err := fs.ReadFile(root, "proc/meminfo")
	if err == nil {
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
				if n, err := strconv.ParseInt(f[1], 10, 64); err == nil && n > 0 && n < 1<<40 {
					return n << 10
				}
			}
		}
	}
	return 4 << 30
}

// groupMemory is the smallest memory limit, in bytes, of our control group
// and those above it; 0: none. root is the root of the file system. Both
// versions of control groups are read (cgroups(7)).
func groupMemory(root fs.FS) int64 {
	membership, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	smallest := int64(math.MaxInt64)
	for line := range strings.Lines(string(membership)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		// In a container the path may be the host's and not exist here; then
		// the mount's root is our group.
		for dir := path.Join("/", parts[2]); ; dir = path.Dir(dir) {
			smallest = min(smallest, readLimit(root, path.Join(mount, dir, file)))
			if dir == "/" {
				break
			}
		}
	}
	// Version 1 says "no limit" with a number near 2^63.
	if smallest > 1<<60 {
		return 0
	}
	return smallest
}

// readLimit reads a number of bytes; what is no limit is MaxInt64.
func readLimit(root fs.FS, name string) int64 {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil || n <= 0 {
		return math.MaxInt64 // "max"
	}
	return n
}
