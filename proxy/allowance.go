// Allowance: how much a key may ask for a minute, and what it has used of it.
package proxy

import (
	"strconv"
	"time"

	"kvasir/kvroute"
)

// requestLeft takes one request of this minute's.
func (k *keyState) requestLeft(now time.Time) *apiError {
	if b := k.requests; b != nil && !b.Take(now, 1) {
		return limited("requests", k.RequestsPerMinute, b.Until(now, 1))
	}
	return nil
}

// tokensLeft asks whether there are tokens of the model left; no key has all.
func (k *keyState) tokensLeft(model string, now time.Time) *apiError {
	if k == nil {
		return nil
	}
	if b := k.tokensOf(model); b != nil && b.Level(now) < 1 {
		return limited("tokens", k.TokensPerMinute, b.Until(now, 1))
	}
	return nil
}

func limited(what string, limit int, wait time.Duration) *apiError {
	return &apiError{
		status: 429, kind: "rate_limit_error", code: "rate_limit_exceeded", retryAfter: wait,
		message: "Rate limit reached: " + strconv.Itoa(limit) + " " + what + " per minute for this key; try again in " + roundUp(wait).String(),
	}
}

// admit asks whether the key may have the model, and has requests and tokens
// left in this minute.
func (x *exchange) admit() *apiError {
	if x.key == nil {
		return nil
	}
	if !x.permitted(x.model) || !x.state.serves(x.model) {
		return unknownModel(x.model)
	}
	now := x.ctx.Time()
	if err := x.key.requestLeft(now); err != nil {
		return err
	}
	return x.key.tokensLeft(x.model, now)
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
	if b := x.key.tokensOf(x.model); b != nil {
		b.Spend(time.Now(), float64(tokens))
	}
}

// bytesPerToken is how many bytes a token is taken for when nobody counted: a
// low estimate of English, near to the truth for Chinese.
const bytesPerToken = 4

// uncounted estimates the tokens of a request that a worker was asked and did
// not come to count: whoever hangs up before the last event would have
// everything for nothing otherwise. An event is about a token.
func (b books) uncounted(x *exchange) int {
	asked := x.backend != nil && (x.facts.status < 400 || x.facts.why == whyGone)
	if asked && (x.route.generates() || x.facts.why != "") {
		return x.prompt/bytesPerToken + x.events.contents
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
		dst = appendLimit(dst, "tokens", k.TokensPerMinute, k.tokensOf(model), now)
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
