// Policy: how one worker is picked among those that are eligible. The table has a row for each policy.

package kvroute

import (
	"fmt"
	"strings"
	"time"

	"kvasir/kvroute/cost"
)

// A Policy is a row of the table below.
type Policy uint8

// The policies. Each has a file of its own.
const (
	RoundRobin  Policy = iota // each in turn
	Random                    // any
	LeastLoaded               // the one with the fewest requests under way, of equals the one that is least slow
	P2C                       // of two drawn at random, the one that LeastLoaded would take
	Predict                   // the cheapest by predicted time, and what it costs others (cost.Predict)
	KV                        // the cheapest by blocks held and load (cost.KV)
)

// policies is all that the rest of the code knows of them: Pool, the proxy, the configuration and kvasir replay go by
// the row, and never compare a Policy or its name. A new policy is a file, a constant and a row.
var policies = [...]struct {
	name string
	also string // another name that people have for it

	// pick picks one of the eligible workers by their load; nil is returned where there is none. A policy has either
	// this or price.
	pick func(eligible) *Worker

	// price fills in what each candidate for a leg costs. The cheapest is picked (cost.Pick). It is not given the
	// Query, which a func value would move to the heap for each request.
	price func(*Pool, *Override, time.Time, cost.Prompt, []cost.Candidate)

	// timed: prices are milliseconds until the first token and of what others wait longer. They say as they stand
	// whether a hand-over pays, and requests may wait in the central queue for their cheapest worker.
	timed bool

	// weighed: prices go by PoolOptions.KV, of which a configuration, a request and kvasir replay may set the weights.
	weighed bool
}{
	RoundRobin:  {name: "round_robin", pick: roundRobin},
	Random:      {name: "random", pick: random},
	LeastLoaded: {name: "least_loaded", pick: leastLoaded},
	P2C:         {name: "p2c", also: "power_of_two", pick: p2c},
	Predict:     {name: "predict", price: priceByTime, timed: true},
	KV:          {name: "kv", price: priceByBlocks, weighed: true},
}

// String returns the policy's name in configurations, logs and metrics.
func (p Policy) String() string { return policies[p].name }

// Priced says whether candidates have prices, by what each holds of the prompt. Other policies look at no prompt.
func (p Policy) Priced() bool { return policies[p].price != nil }

// Queues says whether PoolOptions.CentralQueue has an effect.
func (p Policy) Queues() bool { return policies[p].timed }

// Weighed says whether the weights of PoolOptions.KV have an effect.
func (p Policy) Weighed() bool { return policies[p].weighed }

// PolicyNames returns the names of all policies, those with prices first: what they are listed to people in.
func PolicyNames() []string {
	return append(PoliciesThat(Policy.Priced), PoliciesThat(func(p Policy) bool { return !p.Priced() })...)
}

// PoliciesThat returns the names of the policies of which a property holds, such as Policy.Priced.
func PoliciesThat(holds func(Policy) bool) (names []string) {
	for p, row := range policies {
		if holds(Policy(p)) {
			names = append(names, row.name)
		}
	}
	return names
}

// ParsePolicy reads the name of a policy, which may be written as others do: round-robin, power-of-two.
func ParsePolicy(s string) (Policy, error) {
	plain := strings.ReplaceAll(s, "-", "_")
	for p, row := range policies {
		if plain == row.name || plain == row.also && plain != "" {
			return Policy(p), nil
		}
	}
	return 0, fmt.Errorf("cannot read policy %q: want %s", s, strings.Join(PolicyNames(), ", "))
}
