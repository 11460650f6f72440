// Prompt: what is known of a prompt's content, and the names of its blocks.

package kvroute

import "kvasir/kvroute/kvindex"

// A Prompt is what a request asks an engine to compute. Its fields are set
// once; a Placement made for it looks at it until its Release. It is one
// request's own: not for concurrent use.
type Prompt struct {
	Seed kvindex.Seed // model, adapter and salt: prompts of different seeds share no blocks

	// IDs are its tokens as the engine counts them; nil: not known.
	IDs []uint32

	// Text stands in for tokens that are not known: its blocks meet those of own
	// placements only, never what an engine says of itself.
	Text []byte

	// Count is its length in tokens; where IDs is not nil, their number is.
	Count int

	exact bool // named are the engine's blocks though IDs is nil: NamedPrompt
	named []named
}

// NamedPrompt returns a prompt of so many tokens of which the full blocks of size
// tokens have these names. It is for those who know no more than that, such as
// who plays a trace; in blocks of another size nothing is known to be held.
func NamedPrompt(tokens, size int, names []kvindex.Name) Prompt {
	return Prompt{Count: tokens, exact: true, named: []named{{size, names}}}
}

// named are the names of a prompt's blocks of one size.
type named struct {
	size  int // tokens
	names []kvindex.Name
}

// bytesPerToken is what a block of text takes for a token: the usual figure for
// English, and no more than a guess for the rest. It must be the same for
// all prompts: else equal beginnings would be cut apart differently.
const bytesPerToken = 4

// Exact says whether overlaps are counted in the engine's own blocks.
func (p *Prompt) Exact() bool { return p.exact || p.IDs != nil }

// Tokens returns the prompt's length in tokens, estimated unless Exact.
func (p *Prompt) Tokens() int {
	switch {
	case p.IDs != nil:
		return len(p.IDs)
	case p.Count > 0:
		return p.Count
	}
	return len(p.Text) / bytesPerToken
}

// Reset makes p as new, but for memory that it keeps for the next request.
func (p *Prompt) Reset() {
	if p.exact { // the names are the caller's
		p.named = nil
	}
	for i := range p.named {
		p.named[i].names = p.named[i].names[:0]
	}
	*p = Prompt{named: p.named[:0]}
}

// names returns the names of the blocks of size tokens, made if this is the
// first time that somebody asks for them.
func (p *Prompt) names(size int) []kvindex.Name {
	for i := range p.named {
		if p.named[i].size == size {
			return p.named[i].names
		}
	}
	n := len(p.named)
	if n < cap(p.named) { // memory of an earlier prompt
		p.named = p.named[:n+1]
	} else {
		p.named = append(p.named, named{})
	}
	at := &p.named[n]
	at.size = size
	if p.Exact() {
		at.names = kvindex.AppendNames(at.names[:0], p.Seed, p.IDs, size)
	} else {
		at.names = kvindex.AppendTextNames(at.names[:0], p.Seed, p.Text, size*bytesPerToken)
	}
	return at.names
}

// AppendNames appends the names of the prompt's full pieces of size tokens, each of all tokens up to its end, for who
// wants to know what prompts have in common. Nothing is kept. Where only text is known a piece is of as much text as so
// many tokens usually have.
func (p *Prompt) AppendNames(dst []kvindex.Name, size int) []kvindex.Name {
	switch {
	case p.IDs != nil:
		return kvindex.AppendNames(dst, p.Seed, p.IDs, size)
	case p.Text != nil:
		return kvindex.AppendTextNames(dst, p.Seed, p.Text, size*bytesPerToken)
	}
	return dst
}

// textBlock returns how many tokens a block of text stands for that is cut for an
// engine's blocks of size tokens.
func (p *Prompt) textBlock(size int) int {
	if len(p.Text) == 0 {
		return size
	}
	return max(size*bytesPerToken*p.Tokens()/len(p.Text), 1)
}
