// Explain: what placement would do with a request, without doing it.

package kvroute

import "errors"

// Explain returns every candidate for the request as it would be priced now, and
// why one of them would be picked, as Placement has both. Nothing is taken and
// nothing is noted. Policies without prices have no candidates.
//
// Errors: those of Place. With ErrFull the candidates are there where it is the
// engines that are full, and not their slots.
func (p *Pool) Explain(q Query) ([]Candidate, string, error) {
	s, err := p.find(q.Model)
	if err != nil {
		return nil, "", err
	}
	of, err := p.candidates(s, &q)
	if err != nil {
		return nil, "", err
	}
	if !p.options.Policy.Priced() {
		return nil, of.why(policies[p.options.Policy].name, &q), nil
	}
	of.name(q.Prompt)
	q.ahead = p.line.work(q.Model)
	pl := &p.line.placer
	pl.mu.Lock()
	defer pl.mu.Unlock()
	at, err := pl.gather(&of, &q)
	if err != nil && !errors.Is(err, ErrFull) {
		return nil, "", err
	}
	picked := pl.cheapest(p, &q)
	var all []Candidate
	for _, g := range [...]*group{&pl.whole, &pl.decode, &pl.prefill} {
		all = g.appendTo(all)
	}
	if err != nil || picked == nil {
		return all, "", ErrFull
	}
	if at.Why == "" {
		at.Why = of.why(policies[p.options.Policy].name, &q)
	}
	main, pre := pl.picked()
	if p.options.CentralQueue && pl.shut(q.Now, main, pre) {
		return all, at.Why, ErrFull
	}
	return all, at.Why, nil
}
