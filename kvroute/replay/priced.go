// The priced policies: mirrors of the engines, the prices of kvroute/cost, and its central queue.

package replay

import (
	"math/rand/v2"
	"slices"
	"time"

	"kvasir/kvroute"
	"kvasir/kvroute/cost"
	"kvasir/kvroute/kvindex"
)

// Names of the priced policies.
const (
	kvPolicy      = "kv"
	predictPolicy = "predict"
)

// priced places by price.
type priced struct {
	fleet       *fleet
	price       func(time.Time, cost.Prompt, []cost.Candidate)
	byBlocks    bool // the price asks which blocks are in use
	temperature float64
	random      *rand.Rand
	mirrors     []*cost.Mirror
	sent        []*cost.Request  // by number of the job: at who answers it
	prefilling  []*cost.Request  // at who computes its prompt for another one
	hits        []int            // prompt tokens that are not computed, by number of the job
	candidates  []cost.Candidate // by worker
	aside       []bool           // by worker, as telemetry says
	queue       *cost.Queue[*Job]
}

// pricedPlacer places by price.
func pricedPlacer(f *fleet) Placer {
	p := &priced{
		byBlocks: true,
		fleet:    f, temperature: f.Temperature, random: f.draws(),
		sent: make([]*cost.Request, len(f.jobs)), prefilling: make([]*cost.Request, len(f.jobs)),
		hits: make([]int, len(f.jobs)), candidates: make([]cost.Candidate, len(f.engines)),
		aside: make([]bool, len(f.engines)),
	}
	for range f.engines {
		p.mirrors = append(p.mirrors, cost.NewMirror(cost.Engine{
			BlockSize: f.BlockSize, Blocks: f.Blocks, Budget: f.MaxBatchedTokens, MaxSeqs: f.MaxSeqs,
		}))
	}
	if f.Policy == kvPolicy {
		p.price = f.KV.Price
	} else {
		p.price = f.Predict.Price
	}
	placer := Placer{Index: true, Place: p.place, Sent: p.send, Prefilled: p.prefilled, Hardware: p.hardware, Token: p.token, End: p.end}
	if f.Queue {
		p.queue = new(cost.Queue[*Job])
		placer.Next = p.next
	}
	return placer
}

// hardware takes in what telemetry says: those aside are passed over where others are there for the same.
func (p *priced) hardware(now time.Time, worker int, h kvroute.Hardware) {
	p.mirrors[worker].SetSlow(now, h.Slow)
	p.aside[worker] = h.Aside
	first := p.fleet.Prefill
	for w := range p.candidates {
		like := p.aside[first:]
		if w < first {
			like = p.aside[:first]
		}
		p.candidates[w].Aside = p.aside[w] && slices.Contains(like, false)
	}
}

// place prices j at all workers, or puts it into the queue.
func (p *priced) place(now time.Time, j *Job, overlaps []kvindex.Overlap) int {
	p.load(now)
	worker := p.choose(now, j, overlaps)
	if p.queue == nil {
		return worker
	}
	p.queue.Push(now, p.shortest(j), j)
	return Waits
}

// next takes the first of the queue that can go.
func (p *priced) next(now time.Time) (*Job, int) {
	if p.queue.Len() == 0 || !p.load(now) {
		return nil, 0
	}
	var worker int
	w := p.queue.Next(func(w *cost.Waiting[*Job]) (bool, time.Duration) {
		j := w.Value
		worker = p.choose(now, j, p.fleet.book.find(j.Names))
		room := p.candidates[worker].Load.Open(cost.Whole)
		if j.Prefill >= 0 {
			room = p.candidates[j.Prefill].Load.Open(cost.PrefillLeg) && p.candidates[worker].Load.Open(cost.DecodeLeg)
		}
		return room, p.shortest(j)
	})
	if w == nil {
		return nil, 0
	}
	return w.Value, worker
}

// load looks at all workers, and reports whether one has room in its next pass.
func (p *priced) load(now time.Time) (open bool) {
	for w, m := range p.mirrors {
		p.candidates[w].Load = m.Load(now)
		open = open || p.candidates[w].Load.Open(cost.Whole)
	}
	return open
}

// shortest is how long the prompt of j takes on the worker that holds most of it, of those just priced that may
// compute it.
func (p *priced) shortest(j *Job) time.Duration {
	may := p.candidates
	if p.fleet.Prefill > 0 && p.fleet.Disaggregate == Always {
		may = may[:p.fleet.Prefill]
	}
	return cost.Shortest(j.PromptTokens, may)
}

// choose returns who should answer j, of the workers as load saw them, and sets who computes its prompt.
func (p *priced) choose(now time.Time, j *Job, overlaps []kvindex.Overlap) int {
	for w := range p.candidates {
		p.candidates[w].Overlap = overlaps[w]
		if p.byBlocks {
			p.candidates[w].Active = p.mirrors[w].Active(j.Names)
			p.candidates[w].Users = p.mirrors[w].Users(j.Names, p.candidates[w].Active)
		}
	}
	first := p.fleet.Prefill
	prefill, decode := p.candidates[:first], p.candidates[first:]
	whole := cost.Prompt{Tokens: j.PromptTokens}
	j.Prefill = -1
	if first == 0 {
		worker := p.cheapest(now, whole, decode)
		p.hits[j.Number] = decode[worker].Hit
		return worker
	}
	alone := p.cheapest(now, whole, decode)
	priced := decode[alone]
	computes := p.cheapest(now, cost.Prompt{Tokens: j.PromptTokens, Leg: cost.PrefillLeg}, prefill)
	answers := p.cheapest(now, cost.Prompt{Tokens: j.PromptTokens, Leg: cost.DecodeLeg}, decode)
	if p.fleet.Disaggregate == Auto {
		alones, pairs := p.waits(&priced, len(decode)), p.waits(&prefill[computes], len(prefill))
		if _, pays := p.fleet.Predict.Handed(whole, &priced, &prefill[computes], &decode[answers], alones, pairs); !pays {
			p.hits[j.Number] = priced.Hit
			return first + alone
		}
	}
	j.Prefill, p.hits[j.Number] = computes, prefill[computes].Hit
	return first + answers
}

// waits is how long the prompts in the queue keep workers busy of whom c, the cheapest, has no room now.
func (p *priced) waits(c *cost.Candidate, workers int) time.Duration {
	if p.queue == nil || c.Load.Open(cost.Whole) {
		return 0
	}
	return p.queue.Work() / time.Duration(workers)
}

// cheapest prices the candidates and takes one.
func (p *priced) cheapest(now time.Time, prompt cost.Prompt, c []cost.Candidate) int {
	p.price(now, prompt, c)
	return cost.Pick(c, p.temperature, p.random.Uint64)
}

// send notes who was sent what.
func (p *priced) send(now time.Time, j *Job) {
	sent := cost.Sent{Prompt: j.PromptTokens, Hit: p.hits[j.Number]}
	if p.byBlocks {
		sent.Names = j.Names
	}
	if j.Prefill >= 0 {
		sent.Leg = cost.PrefillLeg
		p.prefilling[j.Number] = p.mirrors[j.Prefill].Send(now, sent)
		sent.Leg, sent.Hit = cost.DecodeLeg, 0
	}
	p.sent[j.Number] = p.mirrors[j.Worker].Send(now, sent)
}

// prefilled notes that the first leg has answered.
func (p *priced) prefilled(now time.Time, j *Job) {
	m, r := p.mirrors[j.Prefill], p.prefilling[j.Number]
	m.Tokens(r, now, 1)
	m.End(r, now)
}

func (p *priced) token(now time.Time, j *Job) { p.mirrors[j.Worker].Tokens(p.sent[j.Number], now, 1) }

func (p *priced) end(now time.Time, j *Job) { p.mirrors[j.Worker].End(p.sent[j.Number], now) }
