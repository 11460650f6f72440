// Commit: what is noted of a request that was placed by price.

package kvroute

import (
	"time"

	"kvasir/kvroute/cost"
	"kvasir/kvroute/kvindex"
)

// commit notes where the request went, for those after it, and fills in what the
// placement says of it.
func (pl *placer) commit(p *Pool, at *Placement, q *Query, main, pre *group) {
	h := at.hold()
	at.Rank, at.Overlap = main.commit(&h.main, p, q, q.Quiet)
	if at.Rank < 0 && q.Pin.Ranked && at.Worker.Engine().Ranks != 1 {
		at.Rank = q.Pin.Rank // the number of ranks is not known
	}
	at.PrefillRank = -1
	if pre != nil {
		h.pre.worker = at.Prefill
		at.PrefillRank, at.PrefillOverlap = pre.commit(&h.pre, p, q, false)
		if at.PrefillRank < 0 && q.Pin.PrefillRanked && at.Prefill.Engine().Ranks != 1 {
			at.PrefillRank = q.Pin.PrefillRank
		}
	}
	h.list = shownPool.Get().(*shown)
	for _, g := range [...]*group{&pl.whole, &pl.decode, &pl.prefill} {
		h.list.all = g.appendTo(h.list.all)
	}
	at.Candidates = h.list.all
}

// commit notes that the request goes to the best of the group.
func (g *group) commit(l *leg, p *Pool, q *Query, quiet bool) (rank int, o Overlap) {
	s, c := &g.candidates[g.best], &g.priced[g.best]
	sent := cost.Sent{Prompt: q.tokens(), Hit: c.Hit, Leg: g.leg, Quiet: quiet, Names: s.names}
	l.send(q.Now, s.rank, sent)
	exact := q.Prompt != nil && q.Prompt.Exact()
	if news := s.rank.worker.line.Load().news; news != nil {
		l.tellPlaced(news, s.rank, &Away{
			Rank: s.rank.id, Leg: g.leg, Prompt: sent.Prompt, Hit: sent.Hit, BlockSize: s.rank.blockSize(), Exact: exact, Names: s.names,
		})
	}
	l.noteSent(s.rank, g.leg, exact, s.names, q.Now)
	return s.rank.id, s.overlap(c.Overlap)
}

// noteSent notes which blocks a request leaves at a rank, for the placements after it.
func (l *leg) noteSent(r *rank, leg cost.Leg, exact bool, names []kvindex.Name, now time.Time) {
	switch {
	case len(names) == 0:
	case !exact:
		l.note(r.texts(), names, now)
	case leg == cost.DecodeLeg && r.events:
		// Blocks that are handed over come when nobody knows, in overload seconds later, and whoever is placed here for
		// them in the meantime has to compute them. The engine's events say when they are here. To note them at once
		// cost 3 to 6 % of the time to the first token in overload (kvasir replay, 2 + 6 and 4 + 4 workers).
	default:
		l.note(r.cache, names, now)
	}
}

// overlap says what a worker holds of the prompt.
func (s *candidate) overlap(o kvindex.Overlap) Overlap {
	return Overlap{
		Device: int(o.Device), Host: int(o.Host), Disk: int(o.Disk), Predicted: int(o.Predicted),
		Of: len(s.names), BlockSize: s.size,
	}
}

// appendTo appends the candidates as they were priced.
func (g *group) appendTo(dst []Candidate) []Candidate {
	for i := range g.candidates {
		s, c := &g.candidates[i], &g.priced[i]
		dst = append(dst, Candidate{
			Worker: s.rank.worker, Rank: s.rank.id, Leg: g.leg, Chosen: i == g.best, Overlap: s.overlap(c.Overlap),
			Cost: c.Cost, TTFT: c.TTFT, Parts: c.Parts, Slow: c.Load.Slow, Aside: s.aside,
			Load: Load{
				Requests: c.Load.Requests, Decoding: c.Load.Decoding, Backlog: c.Load.Backlog,
				Context: c.Load.Outstanding + c.Load.Streamed,
			},
		})
	}
	return dst
}
