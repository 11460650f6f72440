// Equal requests at two proxies that have one cache, over a real NATS server: the worker is asked once.

package proxy

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvasir/cache"
	"kvasir/cache/embedded"
	"kvasir/kvroute"
)

// A sharedStore is a store that two proxies use, each by a value of its own.
type sharedStore struct {
	cache.Store
	id    string // "": it is not known now
	looks atomic.Int64
	asked atomic.Pointer[func()] // by Identity
}

func (s *sharedStore) Identity() (string, bool) {
	if f := s.asked.Load(); f != nil {
		(*f)()
	}
	return s.id, s.id != ""
}

func (s *sharedStore) Equal(scope cache.Scope, text []byte, until time.Time) (*cache.Entry, error) {
	s.looks.Add(1)
	return s.Store.Equal(scope, text, until)
}

// twoOfOneCache starts two proxies before one worker that know of each other and have one cache.
func twoOfOneCache(t *testing.T, url string, keys ...Key) (a, b *testProxy) {
	t.Helper()
	a, b, _ = twoOfStores(t, url, [2]string{"one", "one"}, keys...)
	return a, b
}

// twoOfStores is twoOfOneCache, where the stores are called so.
func twoOfStores(t *testing.T, url string, ids [2]string, keys ...Key) (a, b *testProxy, stores [2]*sharedStore) {
	t.Helper()
	nats := startNATS(t)
	kept, err := embedded.Open(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	start := func(name, id string) (*testProxy, *sharedStore) {
		s := settingsFor(url)
		store := &sharedStore{Store: kept, id: id}
		s.Cache = cache.New(cache.Options{Store: store, Verifier: onlyEqual{}, Threshold: 0.9, TTL: time.Hour})
		s.CacheOptions = CacheOptions{MaxTemperature: 1, Shared: true}
		s.Peers, s.Routing.Policy = startPeers(t, name, nats), kvroute.LeastLoaded
		if len(keys) > 0 {
			s = keyed(s, keys...)
		}
		return startProxy(t, s), store
	}
	a, stores[0] = start("a", ids[0])
	b, stores[1] = start("b", ids[1])
	waitUntil(t, "they know each other", func() bool {
		return len(a.state.Load().settings.Peers.Status().Peers) == 1 && len(b.state.Load().settings.Peers.Status().Peers) == 1
	})
	return a, b, stores
}

// hears waits until a proxy knows of so many answers that the other one makes.
func (p *testProxy) hears(t *testing.T, making int) {
	t.Helper()
	waitUntil(t, "it knows what the other one makes", func() bool { return p.state.Load().settings.Peers.Status().Making == making })
}

// waits waits until so many requests wait for another proxy's answer.
func (p *testProxy) waits(t *testing.T, want string) {
	t.Helper()
	waitUntil(t, "they wait", func() bool { return strings.Contains(p.metricsPage(t), "kvasir_coalesced_followers "+want+"\n") })
}

// Of those that wait at one proxy the first looks for the answer, and the others get it from there.
func TestEqualRequestsAtTwo(t *testing.T) {
	const others = 20
	w := startGated(t)
	a, b, stores := twoOfStores(t, w.url, [2]string{"one", "one"})
	store := stores[1]
	leader := a.send(t, chatPath, plainChat)
	s := w.step(t)
	b.hears(t, 1)
	clients := []*client{b.send(t, chatPath, plainChat)}
	b.waits(t, "1")
	looked := store.looks.Load()
	for range others {
		clients = append(clients, b.send(t, chatPath, plainChat))
	}
	b.waits(t, fmt.Sprint(1+others))
	if n := store.looks.Load(); n != looked {
		t.Errorf("those that follow have looked %d times", n-looked)
	}
	s.say(httpReply(200, "application/json", chatReply))
	leader.answer(t)
	how := map[string]int{}
	for i, o := range clients {
		got := o.answer(t)
		if got.StatusCode != 200 {
			t.Errorf("%d: %d %v %s", i, got.StatusCode, got.Header, got.body)
		}
		how[got.Header.Get("x-kvasir-cache")]++
	}
	if how["hit"] != 1 || how["wait"] != others {
		t.Errorf("they were answered by %v", how)
	}
	b.hears(t, 0)
	if n := len(w.seen()); n != 1 {
		t.Errorf("the worker was asked %d times", n)
	}
	for _, want := range []string{`{end="elsewhere"} 1`, fmt.Sprintf(`{end="answered"} %d`, others)} { // counted after a client has its answer
		waitUntil(t, want, func() bool { return strings.Contains(b.metricsPage(t), "kvasir_coalesced_requests_total"+want) })
	}
	if got := b.send(t, chatPath, plainChat).answer(t); got.Header.Get("x-kvasir-cache") != "hit" {
		t.Errorf("a later one: %v", got.Header)
	}
}

// A client that wants a stream does not wait for long behind one that does not: that one asks the worker, for both.
func TestEqualRequestHurries(t *testing.T) {
	w := startGated(t)
	a, b := twoOfOneCache(t, w.url)
	leader := a.send(t, chatPath, plainChat)
	first := w.step(t)
	b.hears(t, 1)
	patient := b.send(t, chatPath, plainChat)
	b.waits(t, "1")
	stream := b.send(t, chatPath, strings.Replace(plainChat, "{", `{"stream":true,`, 1))
	second := w.step(t)
	for _, s := range []*step{second, first} {
		s.say(httpReply(200, "application/json", chatReply))
	}
	allAnswered(t, patient, stream, leader)
	if n := len(w.seen()); n != 2 {
		t.Errorf("the worker was asked %d times", n)
	}
}

// Who waits for all that follow may leave: the next one waits on, and nobody asks the worker for that.
func TestEqualRequestThatWaitsLeaves(t *testing.T) {
	w := startGated(t)
	a, b := twoOfOneCache(t, w.url)
	leader := a.send(t, chatPath, plainChat)
	s := w.step(t)
	b.hears(t, 1)
	gone := b.send(t, chatPath, plainChat)
	b.waits(t, "1")
	next := []*client{b.send(t, chatPath, plainChat), b.send(t, chatPath, plainChat)}
	b.waits(t, "3")
	_ = gone.Close()
	b.waits(t, "2")
	s.say(httpReply(200, "application/json", chatReply))
	for _, c := range append(next, leader) {
		if got := c.answer(t); got.StatusCode != 200 {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
	}
	if n := len(w.seen()); n != 1 {
		t.Errorf("the worker was asked %d times", n)
	}
}

// Nobody waits for an answer that comes to another store, nor while his own cannot be asked.
func TestEqualRequestsOfTwoStores(t *testing.T) {
	for name, ids := range map[string][2]string{"two stores": {"one", "two"}, "his is away": {"one", ""}, "the other's is away": {"", "one"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startGated(t)
			a, b, _ := twoOfStores(t, w.url, ids)
			leader := a.send(t, chatPath, plainChat)
			first := w.step(t)
			if ids[0] != "" {
				b.hears(t, 1)
			}
			other := b.send(t, chatPath, plainChat)
			second := w.step(t) // while the first is under way
			for _, s := range []*step{first, second} {
				s.say(httpReply(200, "application/json", chatReply))
			}
			for _, c := range []*client{leader, other} {
				if got := c.answer(t); got.StatusCode != 200 {
					t.Errorf("%d %s", got.StatusCode, got.body)
				}
			}
			if page := b.metricsPage(t); strings.Contains(page, `end="elsewhere`) {
				t.Error("it has waited")
			}
		})
	}
}

// Where the other one's answer does not come, for whatever reason, each asks the worker itself.
func TestEqualRequestsAtTwoThatFail(t *testing.T) {
	for name, row := range map[string]struct {
		body string
		end  func(t *testing.T, a *testProxy, leader *client, s *step)
	}{
		"the worker fails": {plainChat, func(t *testing.T, _ *testProxy, leader *client, s *step) {
			s.say(httpReply(500, "application/json", `{"error":{"message":"no"}}`))
			leader.answer(t)
		}},
		"the client leaves": {plainChat, func(_ *testing.T, _ *testProxy, leader *client, s *step) {
			_ = leader.Close()
			<-s.lost
		}},
		"the answer is not kept": {plainChat, func(t *testing.T, _ *testProxy, leader *client, s *step) {
			s.say(httpReply(200, "application/json", strings.Replace(chatReply, `"finish_reason":"stop"`, `"finish_reason":"length"`, 1)))
			leader.answer(t)
		}},
		"the other one stops": {plainChat, func(_ *testing.T, a *testProxy, _ *client, _ *step) {
			a.state.Load().settings.Peers.Close()
		}},
		"a stream has waited for long": {strings.Replace(plainChat, "{", `{"stream":true,`, 1), func(*testing.T, *testProxy, *client, *step) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startGated(t)
			a, b := twoOfOneCache(t, w.url)
			leader := a.send(t, chatPath, plainChat)
			first := w.step(t)
			b.hears(t, 1)
			other := b.send(t, chatPath, row.body)
			b.waits(t, "1")
			row.end(t, a, leader, first)
			second := w.step(t)
			if strings.Contains(second.body, `"stream":true`) {
				second.say(streamHead + chunk(roleEvent+delta("a")+finishEvent+usageEvent+doneEvent) + "0\r\n\r\n")
			} else {
				second.say(httpReply(200, "application/json", chatReply))
			}
			if got := other.answer(t); got.StatusCode != 200 {
				t.Errorf("%d %s", got.StatusCode, got.body)
			}
		})
	}
}

// Nobody waits for another tenant's answer.
func TestTenantsDoNotWaitForEachOther(t *testing.T) {
	w := startGated(t)
	a, b := twoOfOneCache(t, w.url, Key{Name: "one"}, Key{Name: "two"})
	one := a.send(t, chatPath, plainChat, "Authorization: Bearer sk-one")
	first := w.step(t)
	b.hears(t, 1)
	two := b.send(t, chatPath, plainChat, "Authorization: Bearer sk-two")
	second := w.step(t)
	for _, s := range []*step{first, second} {
		s.say(httpReply(200, "application/json", chatReply))
	}
	allAnswered(t, one, two)
}

// A request that takes over from an equal one whose client has left makes the answer for all, as that one did.
func TestEqualRequestTakesOver(t *testing.T) {
	w := startGated(t)
	a, b := twoOfOneCache(t, w.url)
	leader := a.send(t, chatPath, plainChat)
	first := w.step(t)
	next := a.send(t, chatPath, plainChat)
	a.waits(t, "1")
	first.say(httpReply(500, "application/json", `{"error":{"message":"no"}}`))
	leader.answer(t)
	second := w.step(t)
	waitUntil(t, "the first one has ended", func() bool { return strings.Contains(a.metricsPage(t), "kvasir_coalesced_followers 0\n") })
	b.hears(t, 1)
	other := b.send(t, chatPath, plainChat)
	b.waits(t, "1")
	second.say(httpReply(200, "application/json", chatReply))
	allAnswered(t, next, other)
	if n := len(w.seen()); n != 2 {
		t.Errorf("the worker was asked %d times", n)
	}
}

// Others that wait do so on while one request takes over from another, however long that takes.
func TestEqualRequestTakesOverLate(t *testing.T) {
	w := startGated(t)
	a, b, stores := twoOfStores(t, w.url, [2]string{"one", "one"})
	leader := a.send(t, chatPath, plainChat)
	first := w.step(t)
	next := a.send(t, chatPath, plainChat)
	a.waits(t, "1")
	b.hears(t, 1)
	other := b.send(t, chatPath, plainChat)
	b.waits(t, "1")
	slow := func() { // until the first one has ended, and that would have been heard
		for t.Context().Err() == nil && b.state.Load().settings.Peers.Status().Making > 0 && len(w.seen()) < 2 {
			runtime.Gosched()
		}
	}
	stores[0].asked.Store(&slow)
	first.say(httpReply(500, "application/json", `{"error":{"message":"no"}}`))
	leader.answer(t)
	second := w.step(t)
	second.say(httpReply(200, "application/json", chatReply))
	allAnswered(t, next, other)
	if n := len(w.seen()); n != 2 {
		t.Errorf("the worker was asked %d times", n)
	}
	b.hears(t, 0)
}

// allAnswered wants a good answer for each client.
func allAnswered(t *testing.T, clients ...*client) {
	t.Helper()
	for _, c := range clients {
		if got := c.answer(t); got.StatusCode != 200 {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
	}
}
