// Scaling: what the planner wants, given to what has the workers in Kubernetes.

package serve

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"kvasir/command/wiring"
	"kvasir/config"
	"kvasir/kvroute"
	"kvasir/kvroute/replay"
	"kvasir/planner"
	"kvasir/planner/scale"
)

// scaling is the planning's side of Kubernetes. It belongs to the planning's goroutine.
type scaling struct {
	log     zerolog.Logger
	scaler  *scale.Scaler
	targets scale.Targets
	dryRun  bool
	patient time.Duration // for how long a change is waited for

	group    scale.Group
	seen     scale.Seen // nil: not known now
	changing time.Time  // since when a change is under way, or has got no further; zero: none is
	furthest scale.Got  // that it has got
	stuck    bool       // that takes too long to be waited for
	told     [3]string  // what was logged last, by place
	tried    replay.Fleet
}

const (
	// leastPatience is for how long a change that gets no further is waited for at least: by itself a Deployment is given
	// up after that.
	leastPatience = 10 * time.Minute
	startTimes    = 3 // likewise, in start_time
)

// Places in scaling.told.
const (
	meeting = iota
	looking
	applying
)

// newScaling is nil where nothing is done in Kubernetes.
func newScaling(log zerolog.Logger, c *config.Planner, mode string) *scaling {
	o := wiring.Scaling(c, mode)
	if o == nil {
		return nil
	}
	return &scaling{log: log, scaler: scale.New(o), targets: o.Targets, dryRun: o.DryRun, patient: max(leastPatience, startTimes*c.StartTime)}
}

// close gives the lease back.
func (s *scaling) close(now time.Time) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if err := s.scaler.Close(ctx, now); err != nil {
		s.log.Info().Str("problem", err.Error()).Msg("the planner's lease is left to run out")
	}
}

// closeGrace is how long giving it back may take.
const closeGrace = 3 * time.Second

// roles says which roles have targets: those for prefill or decode, or those that do both. named is false where there
// are none.
func (s *scaling) roles() (apart, named bool) {
	if s == nil || len(s.targets) == 0 {
		return false, false
	}
	_, both := s.targets[kvroute.Both]
	return !both, true
}

// leadsFor says whether it is for us to apply what is wanted, and stays so for a while.
func (s *scaling) leadsFor(while time.Duration, now time.Time) bool {
	return s == nil || s.scaler.Left(now) > while
}

// look asks what there is, and meets the others, who are told how many requests come here.
func (s *scaling) look(ctx context.Context, now time.Time, clock func() time.Time, rate float64, r *planner.Report) {
	var err error
	if s.group, err = s.scaler.Meet(ctx, clock, rate); err != nil {
		s.tell(r, meeting, err)
	}
	seen, lookErr := s.scaler.Look(ctx)
	if s.seen = seen; lookErr != nil {
		s.seen = nil
		s.tell(r, looking, lookErr)
	}
	s.watch(now)
	s.report(r)
	if err == nil && lookErr == nil && s.told[meeting]+s.told[looking] != "" {
		s.told[meeting], s.told[looking] = "", ""
		s.log.Info().Msg("the planner reaches what it scales again")
	}
}

// watch notes for how long a change has got no further. One that gets on is waited for, as long as it takes: some models
// take minutes to load, and a rolling update loads one after the other. Replicas that come and go are no progress.
func (s *scaling) watch(now time.Time) {
	what, got := s.seen.Changing(), s.seen.Got()
	switch {
	case s.seen == nil: // not known now
	case what == "":
		s.changing, s.furthest, s.stuck = time.Time{}, scale.Got{}, false
	case s.changing.IsZero() || got.Updated > s.furthest.Updated || got.Ready > s.furthest.Ready:
		s.changing, s.stuck = now, false
		s.furthest = scale.Got{Updated: max(got.Updated, s.furthest.Updated), Ready: max(got.Ready, s.furthest.Ready)}
	case !s.stuck && now.Sub(s.changing) > s.patient:
		s.stuck = true
		s.log.Warn().Str("change", what).Str("for", now.Sub(s.changing).Round(time.Second).String()).Msg("a change of the workers has got no further for so long that the planner does not wait for it; see why its pods do not become ready")
	}
}

// underWay says whether there is a change that is to be waited for.
func (s *scaling) underWay() bool { return s.seen.Changing() != "" && !s.stuck }

// tell says what is wrong, once for as long as it is the same.
func (s *scaling) tell(r *planner.Report, of int, err error) {
	r.Problem = "planner.kubernetes: " + err.Error()
	r.Failures[planner.KubernetesFailed]++
	if s.told[of] != r.Problem {
		s.told[of] = r.Problem
		s.log.Warn().Str("problem", err.Error()).Msg("the planner cannot scale in Kubernetes; it is tried again with each plan")
	}
}

// report shows what is known.
func (s *scaling) report(r *planner.Report) {
	k := &planner.Kubernetes{Leads: s.group.Leads, Leader: s.group.Leader, Replicas: s.group.Size, Others: s.group.Others, DryRun: s.dryRun, Stuck: s.stuck}
	for _, role := range []kvroute.Role{kvroute.Both, kvroute.Prefill, kvroute.Decode} {
		if target, has := s.targets[role]; has {
			state := s.seen[role]
			k.Targets = append(k.Targets, planner.Target{Role: role.String(), Target: target.String(), Replicas: state.Replicas, Ready: state.Ready, Changing: state.Changing})
		}
	}
	r.Kubernetes = k
}

// apply gives the targets what is wanted, if it is for us to do so.
func (s *scaling) apply(ctx context.Context, now time.Time, want replay.Fleet, r *planner.Report) {
	has := s.seen.Fleet(replay.Fleet{})
	want = s.of(want)
	left := s.scaler.Left(now)
	if s.seen == nil || want == has || s.underWay() || left <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, left) // another one may begin after that
	defer cancel()
	if s.dryRun && want == s.tried {
		return // it was asked what that would do
	}
	changed, err := s.scaler.Apply(ctx, s.seen, want)
	for _, c := range changed {
		s.log.Info().Str("target", c.Target).Int("from", c.From).Int("to", c.To).Bool("dry_run", s.dryRun).Msg("workers are scaled in Kubernetes")
	}
	if err != nil {
		s.tell(r, applying, err)
		return
	}
	s.told[applying] = ""
	if s.tried = want; !s.dryRun {
		r.Applied = &want
	}
}

// of is the part of a fleet that has targets.
func (s *scaling) of(f replay.Fleet) (part replay.Fleet) {
	for role := range s.targets {
		*part.Of(role) = *f.Of(role)
	}
	return part
}
