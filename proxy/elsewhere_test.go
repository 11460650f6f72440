// Equal requests at two proxies that have one cache, over a real NATS server: the worker is asked once.

package proxy

import (
	"strings"
	"testing"

	"kvasir/kvroute"
)

// twoOfOneCache starts two proxies before one worker that know of each other and have one cache.
func twoOfOneCache(t *testing.T, url string, keys ...Key) (a, b *testProxy) {
	t.Helper()
	nats := startNATS(t)
	cached := cachedSettings(t, url)
	start := func(name string) *testProxy {
		s := settingsFor(url)
		s.Cache, s.CacheOptions = cached.Cache, cached.CacheOptions
		s.CacheOptions.Shared = true
		s.Peers, s.Routing.Policy = startPeers(t, name, nats), kvroute.LeastLoaded
		if len(keys) > 0 {
			s = keyed(s, keys...)
		}
		return startProxy(t, s)
	}
	a, b = start("a"), start("b")
	waitUntil(t, "they know each other", func() bool {
		return len(a.state.Load().settings.Peers.Status().Peers) == 1 && len(b.state.Load().settings.Peers.Status().Peers) == 1
	})
	return a, b
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

func TestEqualRequestsAtTwo(t *testing.T) {
	w := startGated(t)
	a, b := twoOfOneCache(t, w.url)
	leader := a.send(t, chatPath, plainChat)
	s := w.step(t)
	b.hears(t, 1)
	var others []*client
	for _, body := range []string{plainChat, plainChat, strings.Replace(plainChat, "{", `{"stream":true,`, 1)} {
		others = append(others, b.send(t, chatPath, body))
	}
	b.waits(t, "3")
	s.say(httpReply(200, "application/json", chatReply))
	leader.answer(t)
	for i, o := range others {
		if got := o.answer(t); got.StatusCode != 200 || got.Header.Get("x-kvasir-cache") != "hit" {
			t.Errorf("%d: %d %v %s", i, got.StatusCode, got.Header, got.body)
		}
	}
	b.hears(t, 0)
	if n := len(w.seen()); n != 1 {
		t.Errorf("the worker was asked %d times", n)
	}
	if page := b.metricsPage(t); !strings.Contains(page, `kvasir_coalesced_requests_total{end="elsewhere"} 3`) {
		t.Error("they are not counted")
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
	for _, c := range []*client{one, two} {
		if got := c.answer(t); got.StatusCode != 200 {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
	}
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
	for _, c := range []*client{next, other} {
		if got := c.answer(t); got.StatusCode != 200 {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
	}
	if n := len(w.seen()); n != 2 {
		t.Errorf("the worker was asked %d times", n)
	}
}
