// Limits of API keys over several proxies.

package proxy

import (
	"crypto/sha256"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kvasir/peers"
)

// keyedFleet starts proxies that know of each other, with one key of these limits.
func keyedFleet(t testing.TB, n int, url string, requests, tokens int) (all []*testProxy) {
	t.Helper()
	nats := startNATS(t)
	var others []*peers.Peers
	for i := range n {
		s := settingsFor(url)
		s.Keys = []Key{{Name: "k", SHA256: sha256.Sum256([]byte("secret")), RequestsPerMinute: requests, TokensPerMinute: tokens}}
		s.Peers = startPeers(t, fmt.Sprint("p", i), nats)
		others = append(others, s.Peers)
		all = append(all, startProxy(t, s))
	}
	for _, p := range others {
		// By name, which comes with the snapshot: what a proxy lets through before that is not known to the others.
		waitUntil(t, "they know each other", func() bool {
			known := p.Status().Peers
			return len(known) == n-1 && !slices.Contains(known, "unknown")
		})
	}
	return all
}

// answering is a worker whose answers have so many tokens.
func answering(t testing.TB, tokens int) *testWorker {
	return startWorker(t, func(c net.Conn, _ string) bool {
		_, err := fmt.Fprint(c, httpReply(200, "application/json", fmt.Sprintf(
			`{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"x"}}],"usage":{"prompt_tokens":1,"completion_tokens":%d,"total_tokens":%d}}`, tokens-1, tokens)))
		return err == nil
	})
}

// Four proxies that all get far more than a key may have let through, together, what one would: never a share more.
func TestRequestsOfFour(t *testing.T) {
	const limit = 200
	all := keyedFleet(t, 4, answering(t, 2).url, limit, 0)
	began := time.Now()
	var through atomic.Int64
	var asking sync.WaitGroup
	for _, p := range all {
		for range 4 {
			asking.Go(func() {
				for range 50 {
					switch got := p.ask(t, "/v1/chat/completions", plainChat, "Authorization: Bearer secret"); got.StatusCode {
					case 200:
						through.Add(1)
					case 429:
					default:
						t.Errorf("%d %s", got.StatusCode, got.body)
					}
				}
			})
		}
	}
	asking.Wait()
	may := float64(limit) + time.Since(began).Seconds()*limit/60
	got := float64(through.Load())
	t.Logf("%.0f of %.0f", got, may)
	if got > may+limit/4 || got < 0.95*limit {
		t.Errorf("%.0f requests were let through, one proxy lets %.0f", got, may)
	}
	waitUntil(t, "all know that there is nothing left", func() bool {
		for _, p := range all {
			if p.state.Load().keys.byDigest[sha256.Sum256([]byte("secret"))].requests.Level(time.Now()) > limit/10 {
				return false
			}
		}
		return true
	})
}

// Tokens that one proxy counts are gone at the others, also at one that had no request of the model yet.
func TestTokensOfTwo(t *testing.T) {
	all := keyedFleet(t, 2, answering(t, 600).url, 0, 1000)
	ask := func(p *testProxy) received {
		return p.ask(t, "/v1/chat/completions", strings.Replace(plainChat, "{", `{"max_tokens":10,`, 1), "Authorization: Bearer secret")
	}
	level := func(p *testProxy) float64 {
		return p.state.Load().keys.byDigest[sha256.Sum256([]byte("secret"))].allowanceOf("m").Level(time.Now())
	}
	if got := ask(all[0]); got.StatusCode != 200 {
		t.Fatalf("%d %s", got.StatusCode, got.body)
	}
	waitUntil(t, "the other one knows", func() bool { l := level(all[1]); return l > 390 && l < 500 })
	if got := ask(all[1]); got.StatusCode != 200 {
		t.Fatalf("%d %s", got.StatusCode, got.body)
	}
	waitUntil(t, "the first one knows", func() bool { return level(all[0]) < 0 })
	if got := ask(all[0]); got.StatusCode != 429 {
		t.Errorf("beyond what all may have: %d %s", got.StatusCode, got.body)
	}
}

// A reload that changes a key gives it a new minute: what others let through counts for that one, whoever was
// known before, and so does what they let through before a request here was for the model. Keys that are gone are forgotten.
func TestReloadedKeysAreShared(t *testing.T) {
	all := keyedFleet(t, 2, answering(t, 600).url, 1000, 20000)
	digest := sha256.Sum256([]byte("secret"))
	ask := func(p *testProxy, secret string) {
		t.Helper()
		if got := p.ask(t, "/v1/chat/completions", plainChat, "Authorization: Bearer "+secret); got.StatusCode != 200 {
			t.Fatalf("%d %s", got.StatusCode, got.body)
		}
	}
	key := func(p *testProxy) *keyState { return p.state.Load().keys.byDigest[digest] }
	requests := func(p *testProxy) float64 { return key(p).requests.Level(time.Now()) }
	tokens := func(p *testProxy) float64 { return key(p).allowanceOf("m").Level(time.Now()) }
	apply := func(p *testProxy, keys ...Key) {
		t.Helper()
		s := *p.state.Load().settings
		s.Keys = keys
		if err := p.Apply(&s); err != nil {
			t.Fatal(err)
		}
	}
	ask(all[0], "secret")
	waitUntil(t, "the other one knows", func() bool { return requests(all[1]) < 999.5 && tokens(all[1]) < 19500 })
	was, changed := key(all[1]), key(all[1]).Key
	changed.Tenant = "another"
	apply(all[1], changed)
	if key(all[1]) == was || requests(all[1]) < 999.9 {
		t.Fatal("a key that was changed has a new minute")
	}
	was.allowanceOf("another model") // a request of before the reload that is under way
	ask(all[0], "secret")
	waitUntil(t, "it counts for the key as it is now", func() bool { return requests(all[1]) < 999.5 && tokens(all[1]) < 19500 })

	other := Key{Name: "other", SHA256: sha256.Sum256([]byte("other")), TokensPerMinute: 20000}
	apply(all[0], changed, other)
	ask(all[0], "other")
	waitUntil(t, "it is owed where nobody has the key yet", func() bool {
		a := all[1].accounts
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.owed[0][accountOf(&other.SHA256, "m")].amount == 600
	})
	apply(all[1], other)
	if got := all[1].state.Load().keys.byDigest[other.SHA256].allowanceOf("m").Level(time.Now()); got > 19500 {
		t.Errorf("a key that came later has %v left", got)
	}
	a := all[1].accounts
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.names) != 1 || len(a.owed[0]) != 0 {
		t.Errorf("%d accounts of keys, %d that are owed", len(a.names), len(a.owed[0]))
	}
}

// What others let a key use while its buckets are made, and are not served yet, is not forgotten: at the start, and
// when a reload brings a key.
func TestSpentWhileKeysAreMade(t *testing.T) {
	p := &Proxy{}
	a := &accounts{p: p, names: map[uint64]account{}}
	var ring *keyring
	var keys []Key
	for name, tc := range map[string]struct{ requests, tokens float64 }{"at the start": {30, 200}, "a reload": {10, 900}} {
		key := Key{Name: name, SHA256: sha256.Sum256([]byte(name)), RequestsPerMinute: 100, TokensPerMinute: 1000}
		requests, tokens := accountOf(&key.SHA256, ""), accountOf(&key.SHA256, "m")
		now := time.Now()
		a.spent(now, requests, 3)
		keys = append(keys, key)
		ring = newKeyring(keys, ring, a)
		a.spent(now, requests, tc.requests)
		a.spent(now, tokens, tc.tokens)
		p.state.Store(&state{keys: ring})
		a.spent(now, requests, 1)
		a.keep(ring)
		k := ring.byDigest[key.SHA256]
		if got, want := k.requests.Level(now), 96-tc.requests; got < want-0.01 || got > want+0.01 {
			t.Errorf("%s: %v requests are left, want %v", name, got, want)
		}
		if got, want := k.allowanceOf("m").Level(now), 1000-tc.tokens; got < want-0.1 || got > want+0.1 {
			t.Errorf("%s: %v tokens are left, want %v", name, got, want)
		}
		if len(a.owed[0])+len(a.owed[1]) > 0 {
			t.Errorf("%s: %v is owed", name, a.owed)
		}
	}
}
