// Condition: the meaning of a GPU's snapshots for the worker on it.

package gpu

import "fmt"

// An Effect is how one kind of trouble changes placement.
type Effect uint8

// The effects.
const (
	EffectOff   Effect = iota // nothing
	EffectCost                // the worker counts as slower
	EffectAside               // the worker is chosen only when all others are full or set aside too
)

var effectNames = [...]string{"off", "cost", "aside"}

func (e Effect) String() string { return effectNames[e] }

// ParseEffect reads off, cost or aside.
func ParseEffect(name string) (Effect, error) {
	for i, n := range effectNames {
		if n == name {
			return Effect(i), nil
		}
	}
	return 0, fmt.Errorf("must be off, cost or aside, not %q", name)
}

// Effects maps each kind of trouble to its effect.
type Effects struct {
	Throttle  Effect // clocks held down by heat or power
	Neighbour Effect // another process computes on the GPU
	Memory    Effect // less than Headroom is free
	Errors    Effect // ECC errors, Xids, a requested recovery action, GPU lost
	Headroom  uint64 // bytes
}

// DefaultEffects are those of an empty configuration.
func DefaultEffects() Effects {
	return Effects{Throttle: EffectCost, Neighbour: EffectCost, Memory: EffectCost, Errors: EffectAside, Headroom: 256 << 20}
}

// A Condition is the present condition of a worker's GPUs.
type Condition struct {
	Slow    float64  // at least 1: factor by which passes take longer than at the engine's full speed
	Aside   bool     // not to be chosen while another worker can serve
	Reasons []string // plain text, one for each effect on each GPU; the caller must not change it
}
