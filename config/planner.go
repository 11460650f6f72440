// Planner: whether there is one, and what no single key shows of it.

package config

import (
	"reflect"
	"time"

	"kvasir/wording"
)

// idlePlanner is the section where nobody sets anything.
var idlePlanner = Planner{
	Mode: "auto", TargetTTFT: 500, TargetITL: 50, Share: 0.95, Min: 1, Max: 64, Window: 10 * time.Minute, Interval: time.Minute, StartTime: time.Minute,
	DownAfter: 5 * time.Minute, MostPlayed: 5000, Budget: 20 * time.Second, Memory: 16 << 20, CommandTimeout: time.Minute,
}

// PlannerMode is planner.mode; auto is advise if another key of planner differs from its default, else off.
func (c *Config) PlannerMode() string {
	p := c.Planner
	if p.Mode != "auto" {
		return p.Mode
	}
	if len(p.Command) == 0 {
		p.Command = nil
	}
	if reflect.DeepEqual(p, idlePlanner) {
		return "off"
	}
	return "advise"
}

// planner finds bounds that contradict each other, and a command that is missing or never run.
func (v *validation) planner(c *Config) {
	p := &c.Planner
	if p.Min > p.Max {
		v.add("must not be above planner.max_workers", "planner.min_workers", "planner.max_workers")
	}
	switch mode := c.PlannerMode(); {
	case mode == "apply" && len(p.Command) == 0:
		v.add("apply runs planner.command: name a program there, or advise only", "planner.mode", "planner.command")
	case mode != "apply" && len(p.Command) > 0:
		v.add("is run by planner.mode: apply only, which is "+wording.Quote(mode), "planner.command", "planner.mode")
	case len(p.Command) > 0 && p.Command[0] == "":
		v.add("is empty: it is the program to run", "planner.command[0]")
	}
}
