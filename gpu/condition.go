// Condition: what a GPU's snapshots mean for the worker on it.

package gpu

import "fmt"

// An Effect says what placement makes of one kind of trouble.
type Effect uint8

// The effects.
const (
	EffectOff   Effect = iota // nothing
	EffectCost                // the worker counts as slower
	EffectAside               // the worker is taken only when all others are full or aside as well
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

// Effects are the kinds of trouble and what each one does.
type Effects struct {
	Throttle  Effect // clocks held down by heat or power
	Neighbour Effect // somebody else computes there
	Memory    Effect // less than Headroom is free
	Errors    Effect // ECC, Xid, recovery asked for, GPU lost
	Headroom  uint64 // bytes
}

// DefaultEffects are those of an empty configuration.
func DefaultEffects() Effects {
	return Effects{Throttle: EffectCost, Neighbour: EffectCost, Memory: EffectCost, Errors: EffectAside, Headroom: 256 << 20}
}

// A Condition is what a worker's GPUs are good for at this moment.
type Condition struct {
	Slow    float64  // at least 1: so many times longer passes take than by what the engine can do
	Aside   bool     // to be left alone while another worker can
	Reasons []string // plain text, one for each effect on each GPU; the caller does not change it
}
