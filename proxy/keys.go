// Keys: who asks, and what they may ask for.

package proxy

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"kvasir/kvroute"
	"kvasir/openai"
)

// A keyState is one API key with what it has used. It outlives a reload that
// leaves the key as it was.
type keyState struct {
	Key
	requests *kvroute.Bucket // nil: no limit

	mu         sync.Mutex            // guards allowances
	allowances map[string]*allowance // of tokens, by model

	accounts *accounts // of several Kvasirs; nil: there is one

	meter atomic.Pointer[keyMeter] // set before the first request
}

func newKeyState(k Key, shared *accounts) *keyState {
	s := &keyState{Key: k, allowances: make(map[string]*allowance), accounts: shared}
	if k.RequestsPerMinute > 0 {
		s.requests = kvroute.PerMinute(k.RequestsPerMinute)
		shared.add(s.requests, &k.SHA256, "")
	}
	return s
}

// allowanceOf is the allowance of one model's tokens; nil when they are not limited.
// Only models that are served get here, so the map stays small.
func (k *keyState) allowanceOf(model string) *allowance {
	if k.TokensPerMinute == 0 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.allowances[model]
	if a == nil {
		a = newAllowance(k.TokensPerMinute)
		k.accounts.add(a.Bucket, &k.SHA256, model)
		k.allowances[model] = a
	}
	return a
}

// A keyring finds keys by their SHA-256. What a caller can time is one hash
// over what he sent himself, one look-up by a digest that he cannot steer, and
// one comparison in constant time: the same for an unknown and a missing key.
type keyring struct {
	byDigest map[[32]byte]*keyState
	nobody   *keyState           // compared with when there is no such key
	secrets  map[string][32]byte // by owner: the least digest of his keys, which nobody else knows
}

func newKeyring(keys []Key, old *keyring, shared *accounts) *keyring {
	r := &keyring{byDigest: make(map[[32]byte]*keyState, len(keys)), nobody: &keyState{}, secrets: make(map[string][32]byte)}
	for _, k := range keys {
		var s *keyState
		if old != nil {
			if was := old.byDigest[k.SHA256]; was != nil && was.sameAs(k) {
				s = was
			}
		}
		if s == nil {
			s = newKeyState(k, shared)
		}
		r.byDigest[k.SHA256] = s
		if least, ok := r.secrets[s.owner()]; !ok || bytes.Compare(k.SHA256[:], least[:]) < 0 {
			r.secrets[s.owner()] = k.SHA256
		}
	}
	return r
}

// owner is whom the key belongs to. A key without a tenant does not belong to the tenant that has
// the same name as the key.
func (k *keyState) owner() string {
	if k.Tenant == "" {
		return "key " + k.Name
	}
	return "tenant " + k.Tenant
}

func (k *keyState) sameAs(other Key) bool {
	return k.Name == other.Name && k.Tenant == other.Tenant && k.Isolate == other.Isolate && slices.Equal(k.Models, other.Models) &&
		k.RequestsPerMinute == other.RequestsPerMinute && k.TokensPerMinute == other.TokensPerMinute
}

// find returns the key whose secret this is, or nil.
func (r *keyring) find(secret []byte) *keyState {
	digest := sha256.Sum256(secret)
	k := r.byDigest[digest]
	want := r.nobody
	if k != nil {
		want = k
	}
	if subtle.ConstantTimeCompare(digest[:], want.SHA256[:]) == 1 && len(secret) > 0 {
		return k
	}
	return nil
}

// allowed says whether the key may have a model; no key may have all.
func (k *keyState) allowed(model string) bool {
	return k == nil || len(k.Models) == 0 || slices.Contains(k.Models, model)
}

// refuseAdapters refuses a request that names an adapter, or what gateways take for another model
// or server, if its key may have certain models only and none of them has that name: a model with
// another adapter is another model. A number, or an object with a path in it, is no name of a
// model.
func refuseAdapters(r *openai.Request, key *keyState) *openai.Error {
	if len(key.Models) == 0 {
		return nil
	}
	for i := range r.Content.Adapters {
		a := &r.Content.Adapters[i]
		if !a.NamedIn(r.Body, key.Models) {
			return &openai.Error{
				Status: 404, Type: "invalid_request_error", Code: "model_not_found", Param: openai.Clip(a.Name),
				Message: "What " + openai.Clip(a.Name) + " asks for does not exist or is not served here: your key is for certain models. " +
					"Leave " + openai.Clip(a.Name) + " out; whoever runs this server can add an adapter's name to keys[].models",
			}
		}
	}
	return nil
}

// required says whether a key must be shown at all.
func (r *keyring) required() bool { return len(r.byDigest) > 0 }

// stranger is what a client is told that shows no known key where one is required; nil:
// this one may go on.
func (r *keyring) stranger(ctx *fasthttp.RequestCtx) *openai.Error {
	if r.required() && r.find(shownKey(&ctx.Request.Header)) == nil {
		return invalidKey()
	}
	return nil
}

// identify finds the key that a request shows; nil without an error: none is needed.
func identify(ring *keyring, h headerPeeker) (*keyState, *openai.Error) {
	if !ring.required() {
		return nil, nil
	}
	if k := ring.find(shownKey(h)); k != nil {
		return k, nil
	}
	return nil, invalidKey()
}

func invalidKey() *openai.Error {
	return &openai.Error{
		Status: 401, Type: "authentication_error", Code: "invalid_api_key",
		Message: "The API key is missing or not valid; send it as `Authorization: Bearer KEY`, or as `X-Api-Key: KEY`",
	}
}

var bearer = []byte("Bearer ")

type headerPeeker interface{ Peek(string) []byte }

// shownKey is the secret as OpenAI's clients send it, or Anthropic's.
func shownKey(h headerPeeker) []byte {
	auth := h.Peek("Authorization")
	if len(auth) > len(bearer) && bytes.EqualFold(auth[:len(bearer)], bearer) {
		return bytes.TrimSpace(auth[len(bearer):])
	}
	return h.Peek("X-Api-Key")
}
