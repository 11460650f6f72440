// Policy kv: the cheapest worker by blocks held and load, as Dynamo has it.

package kvroute

import (
	"time"

	"kvasir/kvroute/cost"
)

// priceByBlocks prices by PoolOptions.KV, with the numbers that the request names itself.
func priceByBlocks(p *Pool, o *Override, now time.Time, prompt cost.Prompt, c []cost.Candidate) {
	kv := p.options.KV
	if o != nil {
		if o.Credit != nil {
			kv.DeviceCredit = *o.Credit
		}
		if o.Scale != nil {
			kv.PrefillLoadScale = *o.Scale
		}
	}
	kv.Price(now, prompt, c)
}
