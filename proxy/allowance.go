// Allowance: how much a key may ask for a minute, and what it has used of it.

package proxy

import (
	"strconv"
	"sync/atomic"
	"time"

	"kvasir/kvroute"
	"kvasir/openai"
)

// takeRequest takes one request of this minute's.
func (k *keyState) takeRequest(now time.Time) *openai.Error {
	if b := k.requests; b != nil && !b.Take(now, 1) {
		return limited("requests", k.RequestsPerMinute, b.Until(now, 1))
	}
	return nil
}

// An allowance is the tokens of one model that a key may use a minute.
type allowance struct {
	*kvroute.Bucket
	limit int
	usual atomic.Int64 // about the longest answer lately whose request named no bound, in tokens
}

func newAllowance(perMinute int) *allowance {
	a := &allowance{Bucket: kvroute.PerMinute(perMinute), limit: perMinute}
	a.usual.Store(answerGuess)
	return a
}

// learn notes the length of an answer whose request named no bound: a longer one
// counts at once, a shorter one in time.
func (a *allowance) learn(tokens int) {
	was := a.usual.Load()
	a.usual.CompareAndSwap(was, max(int64(tokens), was-was/16, answerGuess)) // who comes too late learns from the next
}

// A reservation is what a request under way may come to use. The zero value is none.
type reservation struct {
	of      *allowance
	tokens  int
	guessed int // of tokens, the prompt's, where the answer's were guessed; -1: they were not
}

func limited(what string, limit int, wait time.Duration) *openai.Error {
	wait = max(wait, time.Millisecond) // a zero would say nothing of when
	return &openai.Error{
		Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", RetryAfter: wait,
		Message: "Rate limit reached: " + strconv.Itoa(limit) + " " + what + " per minute for this key; try again in " + roundUp(wait).String(),
	}
}

// admit refuses a model or an adapter that the key may not have, and takes one of the
// key's requests of this minute: it is called once for a request. Without keys it refuses
// nothing; a model that nobody serves is then found out by forward, as it is where a decision may
// still choose another one.
func admit(pl *plan, now time.Time) *openai.Error {
	if pl.key == nil {
		return nil
	}
	if !mayHave(pl, pl.model) {
		return unknownModel(pl.model)
	}
	if !pl.state.serves(pl.model) && !pl.mayChange() {
		return pl.state.unserved(pl.asked, pl.model)
	}
	if err := refuseAdapters(&pl.req, pl.key); err != nil {
		return err
	}
	return pl.key.takeRequest(now)
}

// mayHave says whether the key of a request may have a model that was chosen for it.
func mayHave(pl *plan, model string) bool { return permits(pl.key, pl.asked, model) }

// permits says whether a key may have a model, where it has asked for asked. One that
// may ask for auto or MoM may have whatever they stand for.
func permits(k *keyState, asked, model string) bool {
	return k.allowed(model) || isAutoModel(asked) && (k.allowed("auto") || k.allowed("MoM"))
}

// A tokenAccount is what one request has of its key's tokens a minute. The zero value
// has none.
type tokenAccount struct {
	held  reservation
	spent bool // what it has used is counted
}

// giveBack ends the reservation of a request that has used nothing.
func (t *tokenAccount) giveBack() {
	if t.held.of != nil {
		t.held.of.Settle(time.Now(), float64(t.held.tokens), 0)
		t.held = reservation{}
	}
}

// take sets r aside, in the place of what was set aside of another model's tokens.
// Counted only after the answer, requests at the same time would each find the whole
// minute's.
func (t *tokenAccount) take(r reservation, now time.Time) *openai.Error {
	a := r.of
	if !a.Reserve(now, float64(r.tokens)) {
		if a.Level(now) < 1 {
			return limited("tokens", a.limit, a.Until(now, 1))
		}
		err := limited("tokens", a.limit, a.Until(now, float64(r.tokens)))
		err.Message += ", when a request under way has ended, or with a smaller max_tokens: " + strconv.Itoa(r.tokens) + " were to be set aside for this one"
		return err
	}
	t.giveBack()
	t.held = r
	return nil
}

// spend counts the tokens that a request has used, once: against what is set aside,
// or where nothing is, against of; nil: they are not limited.
func (t *tokenAccount) spend(tokens int, of *allowance) {
	t.spent = true
	if r := t.held; r.of != nil {
		t.held = reservation{}
		r.of.Settle(time.Now(), float64(r.tokens), float64(tokens))
		if r.guessed >= 0 {
			r.of.learn(tokens - r.guessed)
		}
	} else if of != nil {
		of.Spend(time.Now(), float64(tokens))
	}
}

// reserve sets aside, in x.account, what the request may use of a model's tokens, in the place
// of what was set aside of another model's. Whoever refuses the request gives it back (refuse,
// reply.begin).
func (x *exchange) reserve(model string) *openai.Error {
	pl := &x.plan
	if pl.key == nil || !pl.route.Costs() || !pl.state.serves(model) { // of which no name that clients make up is kept
		return nil
	}
	a := pl.key.allowanceOf(model)
	if a == nil {
		return nil
	}
	return x.account.take(estimate(&pl.req, pl.route, a), x.arrived())
}

const (
	answerGuess = 1024 // tokens that an answer is taken for at least, where the request names no bound
	mediaGuess  = 1024 // tokens that an image or a piece of audio is taken for
)

// estimate is what a request may come to use: its prompt by its bytes, and as
// much of an answer as it allows. More than a whole minute's is not asked for,
// there never is more.
func estimate(q *openai.Request, route *openai.Route, a *allowance) reservation {
	prompt := q.Content.Media*mediaGuess + len(q.Content.Texts) // no text is less than a token
	if q.Content.Unread > 0 {
		prompt += len(q.Body) / bytesPerToken
	} else {
		length := 0
		for _, t := range q.Content.Texts {
			length += int(t.At.End - t.At.Start)
		}
		prompt += length / bytesPerToken
	}
	r := reservation{of: a, guessed: -1}
	answer := 0
	if route.Generates() {
		if answer = q.AnswerBound(); answer < 0 {
			answer, r.guessed = int(a.usual.Load()), prompt
		}
	}
	all := float64(prompt) + float64(answer)*float64(q.Choices())*float64(q.Prompts()) // more than an int has
	r.tokens = int(min(max(all, 1), float64(a.limit)))
	return r
}

// spend counts the tokens of an answer after the fact, once. It is called before
// the answer's last byte is sent where they are known by then, so that the next
// request of a client that waits for it finds them counted.
func (x *exchange) spend(tokens int) {
	if x.plan.key != nil && !x.account.spent && tokens > 0 {
		x.account.spend(tokens, x.plan.key.allowanceOf(x.plan.model))
	}
}

// settle spends what the request has used, as far as it is not spent yet, and
// gives back what it has not.
func (x *exchange) settle() {
	if x.spend(x.facts.usage.Total()); !x.account.spent {
		x.spend(x.uncounted())
	}
	x.account.giveBack()
}

// bytesPerToken is how many bytes a token is taken for when nobody counted: a
// low estimate of English, near to the truth for Chinese.
const bytesPerToken = 4

// uncounted estimates the tokens of a request that a worker was asked and did
// not come to count: whoever hangs up before the last event would have
// everything for nothing otherwise. An event is about a token.
func (x *exchange) uncounted() int {
	asked := x.backend != nil && (x.facts.status < 400 || x.facts.why == whyGone)
	if asked && (x.plan.route.Generates() || x.facts.why != "") {
		return x.plan.size/bytesPerToken + x.events.Contents
	}
	return 0
}

// appendLimits appends the x-ratelimit-* headers in OpenAI's form.
func appendLimits(dst []byte, pl *plan, now time.Time) []byte {
	switch {
	case pl.key == nil:
		return dst
	case pl.state.serves(pl.model):
		return pl.key.appendLimits(dst, pl.model, now)
	}
	return pl.key.appendLimits(dst, "", now)
}

// appendLimits appends those of requests, and of the tokens of a model that is
// served; "": of none.
func (k *keyState) appendLimits(dst []byte, model string, now time.Time) []byte {
	if b := k.requests; b != nil {
		dst = appendLimit(dst, "requests", k.RequestsPerMinute, b, now)
	}
	if k.TokensPerMinute > 0 && model != "" {
		dst = appendLimit(dst, "tokens", k.TokensPerMinute, k.allowanceOf(model).Bucket, now)
	}
	return dst
}

func appendLimit(dst []byte, what string, limit int, b *kvroute.Bucket, now time.Time) []byte {
	dst = append(append(append(dst, "x-ratelimit-limit-"...), what...), ": "...)
	dst = strconv.AppendInt(dst, int64(limit), 10)
	dst = append(append(append(dst, "\r\nx-ratelimit-remaining-"...), what...), ": "...)
	dst = strconv.AppendInt(dst, int64(max(b.Level(now), 0)), 10)
	dst = append(append(append(dst, "\r\nx-ratelimit-reset-"...), what...), ": "...)
	dst = append(dst, roundUp(b.Until(now, float64(limit))).String()...)
	return append(dst, "\r\n"...)
}

func roundUp(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
