// Policy predict: the cheapest worker by the predicted time to the first token, and by what that costs others.

package kvroute

import (
	"time"

	"kvasir/kvroute/cost"
)

// priceByTime prices by PoolOptions.Predict. Whatever the policy, it says whether a hand-over pays.
func priceByTime(p *Pool, _ *Override, now time.Time, prompt cost.Prompt, c []cost.Candidate) {
	p.options.Predict.Price(now, prompt, c)
}
