// Policy kv: Dynamo's cost, in blocks.

package cost

import (
	"math"
	"time"
)

// KV prices as Dynamo's KV router does (1.2 and later; lib/kv-router/src/scheduling/selector.rs):
//
//	PrefillLoadScale * max(0, (prefill tokens outstanding + prompt tokens) / block size - credits)
//	+ blocks in use with this prompt + RequestWeight * requests
//
// all of it times Load.Slow where telemetry says that the engine is slow, which Dynamo's does not know.
//
// The credits are DeviceCredit, HostCredit and DiskCredit for each block that the worker holds in that tier.
type KV struct {
	PrefillLoadScale float64 // of prefill work against blocks in use
	DeviceCredit     float64
	HostCredit       float64
	DiskCredit       float64

	// Decay lowers the device credit of a worker that is busier than the others, to 1 / (1 + Decay * x) of it, x its
	// excess of outstanding prefill work in prompts of this length. 0: off.
	Decay float64

	RequestWeight float64 // price of each request that the worker has; Dynamo's decode active request weight
}

// DefaultKV is what Dynamo has without options.
func DefaultKV() KV {
	return KV{PrefillLoadScale: 1, DeviceCredit: 1, HostCredit: 0.75, DiskCredit: 0.25}
}

// Price fills in what placing p at each candidate costs, in blocks.
func (k *KV) Price(_ time.Time, p Prompt, c []Candidate) {
	least := math.MaxInt
	for i := range c {
		if !c[i].Aside {
			least = min(least, c[i].Load.Prefilling)
		}
	}
	for i := range c {
		k.price(p, &c[i], least)
	}
}

func (k *KV) price(p Prompt, c *Candidate, least int) {
	size := float64(c.Load.Engine.BlockSize)
	perBlock := float64(c.blockTokens()) / size // blocks of the engine that one of the overlap stands for
	device := float64(max(c.Overlap.Device, c.Overlap.Predicted))
	slower := max(float64(c.Overlap.Blocks())-device, 0)
	host := min(float64(c.Overlap.Host), slower)
	credit := k.DeviceCredit
	if k.Decay > 0 && p.Tokens > 0 {
		credit /= 1 + k.Decay*float64(c.Load.Prefilling-least)/float64(p.Tokens)
	}
	credits := perBlock * (credit*device + k.HostCredit*host + k.DiskCredit*(slower-host))

	backlog, prompt := float64(c.Load.Prefilling)/size, float64(p.Tokens)/size
	if p.Leg == DecodeLeg {
		backlog, prompt, credits = 0, 0, 0
	}
	prefill := max(backlog+prompt-credits, 0)
	others := (c.Load.Outstanding - c.Load.Shared) / c.Load.Engine.BlockSize
	blocks := float64(others + max(p.Tokens/c.Load.Engine.BlockSize-c.Active, 0))
	if p.Leg == PrefillLeg {
		blocks = 0 // Dynamo's prefill router tracks no blocks
	}
	c.Hit = c.hit(p.Tokens, 1, 1)
	slow := c.Load.slow()
	weighed, used := slow*k.PrefillLoadScale*prefill, slow*blocks
	requests := slow * k.RequestWeight * float64(c.Load.Requests)
	c.TTFT = 0
	c.Cost = weighed + used + requests
	c.Parts = Parts{
		{"backlog", backlog}, {"prompt", prompt}, {"credit", -credits},
		{"prefill", weighed}, {"blocks", used}, {"requests", requests},
	}
}

func (c *Candidate) blockTokens() int {
	if c.BlockTokens > 0 {
		return c.BlockTokens
	}
	return c.Load.Engine.BlockSize
}

// hit is how many prompt tokens the overlap spares, those on host and disk weighed. The last token is always computed.
func (c *Candidate) hit(tokens int, host, disk float64) int {
	size := c.blockTokens()
	device := float64(max(c.Overlap.Device, c.Overlap.Predicted))
	slower := max(float64(c.Overlap.Blocks())-device, 0)
	onHost := min(float64(c.Overlap.Host), slower)
	blocks := device + host*onHost + disk*(slower-onHost)
	most := max((tokens-1)/size, 0) * size
	return min(int(blocks*float64(size)), most)
}
