// Allowance: how much a key may ask for a minute, and what it has used of it.
package proxy

import (
	"strconv"
	"sync/atomic"
	"time"

	"kvasir/kvroute"
	"kvasir/openai"
)

// requestLeft takes one request of this minute's.
func (k *keyState) requestLeft(now time.Time) *openai.Error {
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

// admit asks whether the key may have the model, and has requests and tokens
// left in this minute.
func (x *exchange) admit() *openai.Error {
	if x.key == nil {
		return nil
	}
	if !x.permitted(x.model) || !x.state.serves(x.model) {
		return unknownModel(x.model)
	}
	if err := x.refuseAdapters(); err != nil {
		return err
	}
	now := x.arrived()
	if err := x.key.requestLeft(now); err != nil {
		return err
	}
	return x.reserve(x.model)
}

// reserve sets aside what the request may use of a model's tokens, in the place
// of what it has set aside of another's. Counted only after the answer, requests
// at the same time would each find the whole minute's.
func (x *exchange) reserve(model string) *openai.Error {
	if x.key == nil || !x.route.Costs() {
		return nil
	}
	a := x.key.tokensOf(model)
	if a == nil {
		return nil
	}
	now, r := x.arrived(), x.estimate(a)
	if !a.Reserve(now, float64(r.tokens)) {
		if a.Level(now) < 1 {
			return limited("tokens", a.limit, a.Until(now, 1))
		}
		err := limited("tokens", a.limit, a.Until(now, float64(r.tokens)))
		err.Message += ", when a request under way has ended, or with a smaller max_tokens: " + strconv.Itoa(r.tokens) + " were to be set aside for this one"
		return err
	}
	x.giveBack()
	x.held = r
	return nil
}

// giveBack ends the reservation of a request that has used nothing.
func (x *exchange) giveBack() {
	if x.held.of != nil {
		x.held.of.Settle(time.Now(), float64(x.held.tokens), 0)
		x.held = reservation{}
	}
}

const (
	answerGuess = 1024 // tokens that an answer is taken for at least, where the request names no bound
	mediaGuess  = 1024 // tokens that an image or a piece of audio is taken for
)

// estimate is what the request may come to use: its prompt by its bytes, and as
// much of an answer as it allows. More than a whole minute's is not asked for,
// there never is more.
func (x *exchange) estimate(a *allowance) reservation {
	q := &x.req
	prompt := q.Content.Media*mediaGuess + len(q.Content.Texts) // no text is less than a token
	if q.Content.Unread > 0 {
		prompt += len(x.body) / bytesPerToken
	} else {
		length := 0
		for _, t := range q.Content.Texts {
			length += int(t.At.End - t.At.Start)
		}
		prompt += length / bytesPerToken
	}
	r := reservation{of: a, guessed: -1}
	answer := 0
	if x.route.Generates() {
		if answer = q.AnswerBound(); answer < 0 {
			answer, r.guessed = int(a.usual.Load()), prompt
		}
	}
	all := float64(prompt) + float64(answer)*float64(q.Choices())*float64(q.Prompts()) // more than an int has
	r.tokens = int(min(max(all, 1), float64(a.limit)))
	return r
}

// permitted says whether the key may have a model that was chosen for it. One
// that may ask for auto or MoM may have whatever they stand for.
func (x *exchange) permitted(model string) bool {
	return x.key.allowed(model) || isAutoModel(x.facts.asked) && (x.key.allowed("auto") || x.key.allowed("MoM"))
}

// spend counts the tokens of an answer after the fact, once. It is called before
// the answer's last byte is sent where they are known by then, so that the next
// request of a client that waits for it finds them counted.
func (x *exchange) spend(tokens int) {
	if x.key == nil || x.spent || tokens <= 0 {
		return
	}
	x.spent = true
	if r := x.held; r.of != nil {
		x.held = reservation{}
		r.of.Settle(time.Now(), float64(r.tokens), float64(tokens))
		if r.guessed >= 0 {
			r.of.learn(tokens - r.guessed)
		}
	} else if a := x.key.tokensOf(x.model); a != nil {
		a.Spend(time.Now(), float64(tokens))
	}
}

// settle spends what the request has used, as far as it is not spent yet, and
// gives back what it has not.
func (x *exchange) settle() {
	if x.spend(x.facts.usage.Total()); !x.spent {
		x.spend(books{x.p}.uncounted(x))
	}
	x.giveBack()
}

// bytesPerToken is how many bytes a token is taken for when nobody counted: a
// low estimate of English, near to the truth for Chinese.
const bytesPerToken = 4

// uncounted estimates the tokens of a request that a worker was asked and did
// not come to count: whoever hangs up before the last event would have
// everything for nothing otherwise. An event is about a token.
func (b books) uncounted(x *exchange) int {
	asked := x.backend != nil && (x.facts.status < 400 || x.facts.why == whyGone)
	if asked && (x.route.Generates() || x.facts.why != "") {
		return x.prompt/bytesPerToken + x.events.Contents
	}
	return 0
}

// appendLimits appends the x-ratelimit-* headers in OpenAI's form.
func (x *exchange) appendLimits(dst []byte) []byte {
	switch {
	case x.key == nil:
		return dst
	case x.state.serves(x.model):
		return x.key.appendLimits(dst, x.model, time.Now())
	}
	return x.key.appendLimits(dst, "", time.Now())
}

// appendLimits appends those of requests, and of the tokens of a model that is
// served; "": of none.
func (k *keyState) appendLimits(dst []byte, model string, now time.Time) []byte {
	if b := k.requests; b != nil {
		dst = appendLimit(dst, "requests", k.RequestsPerMinute, b, now)
	}
	if k.TokensPerMinute > 0 && model != "" {
		dst = appendLimit(dst, "tokens", k.TokensPerMinute, k.tokensOf(model).Bucket, now)
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
