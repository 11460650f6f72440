// Tests of the memory limit, on pictures of what control groups look like.

package serve

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestGroupMemory(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, tt := range []struct {
		name string
		root fstest.MapFS
		want int64
	}{
		{"no /proc", fstest.MapFS{}, 0},
		{"v2, in a container", fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("1073741824\n")}, 1 << 30},
		{"v2, no limit", fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, 0},
		{"v2, the smallest above counts", fstest.MapFS{
			"proc/self/cgroup":                                     file("0::/system.slice/kvasir.service\n"),
			"sys/fs/cgroup/system.slice/memory.max":                file("500\n"),
			"sys/fs/cgroup/system.slice/kvasir.service/memory.max": file("900\n"),
		}, 500},
		{"v2, the host's path does not exist here", fstest.MapFS{
			"proc/self/cgroup": file("0::/kubepods/pod1/abc\n"), "sys/fs/cgroup/memory.max": file("700\n"),
		}, 700},
		{"v1", fstest.MapFS{
			"proc/self/cgroup": file("3:cpu,cpuacct:/\n2:hugetlb,memory:/docker/abc\n1:name=systemd:/\n"),
			"sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": file("800\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":            file("9223372036854771712\n"),
		}, 800},
		{"v1, no limit", fstest.MapFS{
			"proc/self/cgroup": file("2:memory:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
		}, 0},
		{"nonsense", fstest.MapFS{"proc/self/cgroup": file("x\n0::/../../etc\n"), "sys/fs/cgroup/etc/memory.max": file("-5\n")}, 0},
	} {
		if got := groupMemory(tt.root); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
	if got := limitMemory(fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("1000\n")}, "2GiB"); got != 0 {
		t.Errorf("GOMEMLIMIT was overruled by %d", got)
	}
}

func TestBodyMemory(t *testing.T) {
	t.Parallel()
	machine := fstest.MapFS{"proc/meminfo": &fstest.MapFile{Data: []byte("MemFree: 1 kB\nMemTotal:       16777216 kB\n")}}
	for _, tt := range []struct {
		name  string
		root  fstest.MapFS
		limit int64
		least int64
		want  int64
	}{
		{"a quarter of the limit", machine, 1 << 30, 3 << 20, 256 << 20},
		{"no limit: of the machine", machine, math.MaxInt64, 3 << 20, 4 << 30},
		{"nothing known", fstest.MapFS{}, math.MaxInt64, 3 << 20, 1 << 30},
		{"room for one large body", machine, 100 << 20, 96 << 20, 96 << 20},
	} {
		if got := bodyMemory(tt.root, tt.limit, tt.least); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
