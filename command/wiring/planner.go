// Planner: what the configuration says of how many workers there should be.

package wiring

import (
	"time"

	"kvasir/config"
	"kvasir/kvroute/replay"
	"kvasir/planner"
)

// Planner are the planner's options; the engines' part is what the proxy sees of them.
func Planner(c *config.Planner) planner.Options {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	return planner.Options{
		Targets: replay.Targets{TTFT: ms(c.TargetTTFT), ITL: ms(c.TargetITL)}, Share: c.Share, Min: c.Min, Max: c.Max,
		Window: c.Window, Interval: c.Interval, Start: c.StartTime, DownAfter: c.DownAfter, MostPlayed: c.MostPlayed,
	}
}
