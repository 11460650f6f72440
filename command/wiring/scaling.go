// Scaling: the planner's side of Kubernetes, as the configuration has it.

package wiring

import (
	"cmp"
	"time"

	"kvasir/config"
	"kvasir/planner/scale"
)

const (
	leasePlans = 3                // plans of one that leads that may be missed before another one does
	leastTerm  = 15 * time.Second // of a lease
)

// Scaling is what the planner does in Kubernetes; nil where that is nothing.
func Scaling(c *config.Planner, mode string) *scale.Options {
	k := &c.Kubernetes
	if !k.On() {
		return nil
	}
	return &scale.Options{
		Kubeconfig: string(k.Kubeconfig), Namespace: k.Namespace, Targets: k.Targets(),
		Lease: cmp.Or(k.Lease, "kvasir-planner"), Term: term(c), DryRun: mode != "apply",
	}
}

// term is for how long a lease is good. It is renewed once for each plan, and what that takes comes on top: one that plans
// or runs a command is not to lose it meanwhile.
func term(c *config.Planner) time.Duration {
	term := max(leastTerm, leasePlans*c.Interval) + c.Budget
	if len(c.Command) > 0 {
		term += c.CommandTimeout
	}
	return term
}
