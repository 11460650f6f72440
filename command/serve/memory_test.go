// Tests of the memory limit and of the bodies' part of it.

package serve

import (
	"math"
	"testing"
)

// Who sets GOMEMLIMIT means it. What control groups look like is tested where
// they are read, in automemlimit.
func TestMemoryLimitOfTheUser(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "2GiB")
	if got := limitMemory(); got != 0 {
		t.Errorf("GOMEMLIMIT was overruled by %d", got)
	}
}

func TestBodyMemory(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                        string
		limit, machine, least, want int64
	}{
		{"a quarter of the limit", 1 << 30, 16 << 30, 3 << 20, 256 << 20},
		{"no limit: of the machine", math.MaxInt64, 16 << 30, 3 << 20, 4 << 30},
		{"room for one large body", 100 << 20, 16 << 30, 96 << 20, 96 << 20},
	} {
		if got := bodyMemory(tt.limit, tt.machine, tt.least); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
	if n := machineMemory(); n < 64<<20 {
		t.Errorf("the machine has %d bytes", n)
	}
}
