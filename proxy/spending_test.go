// Tests of tokens and costs by key, model and tenant.

package proxy

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"kvasir/openai/answer"
)

// TestSpending: tokens and requests by key, what they cost, and that a reload forgets the keys it drops.
func TestSpending(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":1000,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":400}}}`
	reply := chatReply[:strings.Index(chatReply, `"usage"`)] + usage
	good := startWorker(t, send(httpReply(200, "application/json", reply)))
	settings := func(keys ...Key) *Settings {
		s := keyed(settingsFor(good.url), keys...)
		s.Models[0].Price, s.Currency = Price{Prompt: 2, Completion: 10, Cached: 0.5}, "EUR"
		return s
	}
	p := startProxy(t, settings(Key{Name: "a", Tenant: "red"}, Key{Name: "b", Tenant: "red"}, Key{Name: "c", RequestsPerMinute: 1}))
	const path = "/v1/chat/completions"
	for _, key := range []string{"a", "b", "b", "c", "c"} {
		p.ask(t, path, plainChat, "Authorization: Bearer sk-"+key)
	}
	p.ask(t, path, `{"model":"x","messages":[]}`, "Authorization: Bearer sk-a")
	const one = (600*2 + 400*0.5 + 100*10) / 1e6
	p.has(t, map[string]float64{
		`kvasir_key_requests_total{key="a",result="answered",tenant="red"}`: 1,
		`kvasir_key_requests_total{key="a",result="failed",tenant="red"}`:   1,
		`kvasir_key_requests_total{key="b",result="answered",tenant="red"}`: 2,
		`kvasir_key_requests_total{key="c",result="answered",tenant="c"}`:   1,
		`kvasir_key_requests_total{key="c",result="limited",tenant="c"}`:    1,
		`kvasir_key_requests_total{key="c",result="blocked",tenant="c"}`:    0,
		`kvasir_key_tokens_total{key="b",tenant="red",type="prompt"}`:       2000,
		`kvasir_key_tokens_total{key="b",tenant="red",type="cached"}`:       800,
		`kvasir_key_tokens_total{key="b",tenant="red",type="completion"}`:   200,
		`kvasir_cost_total{currency="EUR",model="m",tenant="red"}`:          one + one + one,
		`kvasir_cost_total{currency="EUR",model="m",tenant="c"}`:            one,
	})
	if log := p.log.String(); strings.Count(log, `"tokens_cost":0.0024`) != 4 {
		t.Errorf("the log says\n%s", log)
	}
	if err := p.Apply(settings(Key{Name: "b", Tenant: "blue"})); err != nil {
		t.Fatal(err)
	}
	for name := range seriesOf(t, p) {
		if strings.HasPrefix(name, "kvasir_key_") && !strings.Contains(name, `key="b"`) || strings.Contains(name, `tenant="red"`) || strings.Contains(name, `tenant="c"`) {
			t.Errorf("%s is still there", name)
		}
	}
	p.ask(t, path, plainChat, "Authorization: Bearer sk-b")
	p.has(t, map[string]float64{
		`kvasir_key_tokens_total{key="b",tenant="blue",type="prompt"}`: 1000,
		`kvasir_cost_total{currency="EUR",model="m",tenant="blue"}`:    one,
	})
}

// TestLateSpending: a request that ends after a reload has dropped its tenant brings no series back.
func TestLateSpending(t *testing.T) {
	good := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	p := startProxy(t, keyed(settingsFor(good.url), Key{Name: "a"}))
	late := p.metrics.spending.tenants["a"]
	if err := p.Apply(keyed(settingsFor(good.url), Key{Name: "b"})); err != nil {
		t.Fatal(err)
	}
	p.metrics.spending.costOf(late, costLabels{"m", "USD"}).spent.Add(1)
	for name := range seriesOf(t, p) {
		if strings.Contains(name, `tenant="a"`) {
			t.Errorf("%s is there", name)
		}
	}
}

// TestManyKeys: the first thousand keys have series of their own, the others share one.
func TestManyKeys(t *testing.T) {
	good := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	var keys []Key
	for i := range maxNames + 5 {
		keys = append(keys, Key{Name: fmt.Sprint("k", i)})
	}
	p := startProxy(t, keyed(settingsFor(good.url), keys...))
	p.ask(t, "/v1/chat/completions", plainChat, "Authorization: Bearer sk-k999")
	p.ask(t, "/v1/chat/completions", plainChat, "Authorization: Bearer sk-k1001")
	p.ask(t, "/v1/chat/completions", plainChat, "Authorization: Bearer sk-k1004")
	p.has(t, map[string]float64{
		`kvasir_key_requests_total{key="k999",result="answered",tenant="k999"}`:     1,
		`kvasir_key_requests_total{key="_other",result="answered",tenant="_other"}`: 2,
	})
	count := 0
	for name := range seriesOf(t, p) {
		if strings.HasPrefix(name, "kvasir_key_requests_total{") {
			count++
		}
	}
	if count != (maxNames+1)*keyResults {
		t.Errorf("%d series, want %d", count, (maxNames+1)*keyResults)
	}
}

// BenchmarkReloadOfKeys is a reload that puts as many keys as have series, each with costs of twenty models, in the
// place of others: 0.14 s, of which the reload itself is 0.05. When it looked for the series of each key
// among all of them it took 6.6 s.
func BenchmarkReloadOfKeys(b *testing.B) {
	good := startWorker(b, send(httpReply(200, "application/json", chatReply)))
	var keys [2][]Key
	for i := range maxNames {
		keys[0], keys[1] = append(keys[0], Key{Name: fmt.Sprint("k", i)}), append(keys[1], Key{Name: fmt.Sprint("j", i)})
	}
	p := startProxy(b, keyed(settingsFor(good.url), keys[0]...))
	for n := 1; b.Loop(); n++ {
		for _, tenant := range p.metrics.spending.tenants {
			for m := range 20 {
				p.metrics.spending.costOf(tenant, costLabels{fmt.Sprint("m", m), "USD"})
			}
		}
		if err := p.Apply(keyed(settingsFor(good.url), keys[n%2]...)); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSaved: an answer of the cache says what it saved, and costs nothing.
func TestSaved(t *testing.T) {
	s := caching(t, goodWorker(t).url)
	s.Models[0].Price, s.Currency = Price{Prompt: 1, Completion: 10, Cached: -1}, "USD"
	p := startProxy(t, s)
	p.keep(t, "/v1/chat/completions", towerAsked, towerAnswer())
	p.ask(t, "/v1/chat/completions", towerRephrased)
	p.has(t, map[string]float64{
		`kvasir_cache_saved_tokens_total{type="prompt"}`:                    7,
		`kvasir_cache_saved_tokens_total{type="completion"}`:                20,
		`kvasir_cache_saved_cost_total{currency="USD",model="m",tenant=""}`: 207e-6,
		`kvasir_cost_total{currency="USD",model="m",tenant=""}`:             0,
	})
}

func TestPrice(t *testing.T) {
	for _, tc := range []struct {
		price Price
		usage answer.Usage
		want  float64
	}{
		{Price{1, 10, 0.1}, answer.Usage{Prompt: 1000, Completion: 100, Cached: 500}, (500*1 + 500*0.1 + 100*10) / 1e6},
		{Price{1, 10, -1}, answer.Usage{Prompt: 1000, Completion: 100, Cached: 500}, (1000*1 + 100*10) / 1e6},
		{Price{1, 10, 0}, answer.Usage{Prompt: 1000, Completion: 100, Cached: 500}, (500*1 + 100*10) / 1e6},
		{Price{1, 10, 0.1}, answer.Usage{Prompt: 1000, Completion: -1, Cached: -1}, 1000 * 1 / 1e6},
		{Price{1, 10, 0}, answer.Usage{Prompt: 10, Completion: 0, Cached: 20}, 0}, // a worker that counts more than there is
		{Price{1, 10, 0}, answer.NoUsage, 0},
	} {
		if got := tc.price.of(tc.usage); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%+v of %+v is %v, want %v", tc.price, tc.usage, got, tc.want)
		}
	}
}
