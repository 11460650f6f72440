// Explain: what placement would do with a request, without doing it.

package kvroute

import "errors"

// Explain returns every candidate for the request as it would be priced now, and
// why one of them would be chosen, as Placement has both. Nothing is taken and
// nothing is noted. Policies without prices have no candidates.
//
// Errors: those of Place. With ErrFull the candidates are there where it is the
// engines that are full, and not their slots.
func (p *Pool) Explain(q Query) ([]Candidate, string, error) {
	s, err := p.find(q.Model)
	if err != nil {
		return nil, "", err
	}
	f, err := p.field(s, &q)
	if err != nil {
		return nil, "", err
	}
	if policies[p.policy].pick != nil {
		return nil, f.why(policies[p.policy].name, &q), nil
	}
	f.name(q.Prompt)
	q.ahead = p.line.work(q.Model)
	d := &p.line.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	at, err := d.seat(&f, &q)
	if err != nil && !errors.Is(err, ErrFull) {
		return nil, "", err
	}
	chosen := d.choose(p, &q)
	var all []Candidate
	for _, g := range [...]*group{&d.whole, &d.decode, &d.prefill} {
		all = g.appendTo(all)
	}
	if err != nil || chosen == nil {
		return all, "", ErrFull
	}
	if at.Why == "" {
		at.Why = f.why(policies[p.policy].name, &q)
	}
	main, pre := d.chosen()
	if p.central && d.shut(q.Now, main, pre) {
		return all, at.Why, ErrFull
	}
	return all, at.Why, nil
}
