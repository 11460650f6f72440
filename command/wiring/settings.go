// Settings: a configuration to what the proxy is told.

package wiring

import (
	"maps"
	"strings"

	"kvasir/config"
	"kvasir/gpu"
	"kvasir/kvroute"
	"kvasir/kvroute/cost"
	"kvasir/proxy"
)

// Settings are what the proxy is told, without the simulated engines.
func Settings(g *config.Generation) *proxy.Settings {
	c := g.Config
	s := &proxy.Settings{
		MaxBody:      int64(c.Server.MaxBody),
		BodyMemory:   int64(c.Server.BodyMemory),
		Timeouts:     proxy.Timeouts(c.Server.Timeouts),
		CORS:         c.Server.CORS,
		Hosts:        c.Server.Hosts,
		AdminHosts:   c.Server.AdminHosts,
		AdminKey:     g.Admin,
		Retry:        proxy.Retry(c.Server.Retry),
		ReplyHeaders: c.Headers.Kvasir,
		VSRHeaders:   c.Headers.VSR,
		BIOTypes:     c.Headers.PIITypes == "bio",
		Classify:     Classify(c),
		Guards:       Guards(c),
		CacheOptions: proxy.CacheOptions{MaxTemperature: c.Cache.MaxTemperature, ToolCalls: c.Cache.ToolCalls, Shared: c.Cache.Store == "milvus", ScopeHeaders: lowerCase(c.Cache.ScopeHeaders)},
		Keys:         keys(g),
		Routing:      routing(&c.Routing),
		GPU:          proxy.GPU{Interval: c.GPU.Interval, Effects: effects(&c.GPU)},
		Compatible:   c.Metrics.Compatible,
		Currency:     c.Metrics.Currency,
		Tracing:      sampler(&g.Tracing),
		TraceContent: g.Tracing.On && g.Tracing.Content,
	}
	for i := range c.Workers {
		s.Workers = append(s.Workers, worker(&c.Workers[i], &g.Workers[i]))
	}
	for _, m := range c.Models {
		s.Models = append(s.Models, proxy.Model{
			Name: m.Name, Default: m.Default, Fallback: m.Fallback, Tokenizer: string(m.Tokenizer), Reasoning: m.Reasoning,
			Price: proxy.Price(m.Price),
		})
	}
	return s
}

// routing is how workers are chosen.
func routing(c *config.Routing) proxy.Routing {
	r := proxy.Routing{Queue: c.Queue != "off", QueueTimeout: c.QueueTimeout, Overrides: c.Overrides}
	r.Policy, _ = kvroute.ParsePolicy(c.Policy) // config has refused others: the keys are enumerations
	r.Disaggregate, _ = kvroute.ParseDisaggregate(c.Disaggregate)
	r.MaxQueued, r.Temperature = c.MaxQueued, c.Temperature
	r.KV = cost.DefaultKV()
	r.KV.PrefillLoadScale = c.PrefillLoadScale
	r.KV.DeviceCredit, r.KV.HostCredit, r.KV.DiskCredit = c.OverlapCredit.Device, c.OverlapCredit.Host, c.OverlapCredit.Disk
	return r
}

func lowerCase(names []string) (lower []string) {
	for _, name := range names {
		lower = append(lower, strings.ToLower(name))
	}
	return lower
}

func keys(g *config.Generation) (keys []proxy.Key) {
	for i, k := range g.Config.Keys {
		keys = append(keys, proxy.Key{
			Name: k.Name, SHA256: g.KeySums[i], Tenant: k.Tenant, Isolate: k.Isolate, Models: k.Models,
			RequestsPerMinute: k.RequestsPerMinute, TokensPerMinute: k.TokensPerMinute,
		})
	}
	return keys
}

func worker(c *config.Worker, shown *config.Credentials) proxy.Worker {
	w := proxy.Worker{
		Name: c.Name, URL: c.URL, Engine: c.Engine, Role: c.Role,
		Models: c.Models, MaxRequests: c.MaxRequests, Headers: maps.Clone(c.Headers),
		KVEvents: c.KVEvents, KVReplay: c.KVReplay, GPUs: c.GPUs, Instance: c.Instance,
		TLS: shown.TLS, TLSName: shown.TLSName,
	}
	if shown.Secret != "" {
		if w.Headers == nil {
			w.Headers = map[string]string{}
		}
		w.Headers["Authorization"] = "Bearer " + shown.Secret
	}
	return w
}

// effects are what the conditions of a GPU do to placement.
func effects(c *config.GPU) gpu.Effects {
	effect := func(name string) gpu.Effect {
		e, err := gpu.ParseEffect(name)
		if err != nil {
			return gpu.EffectOff // config has refused it: the key is an enumeration
		}
		return e
	}
	return gpu.Effects{
		Throttle: effect(c.Throttle), Neighbour: effect(c.Neighbour), Memory: effect(c.Memory), Errors: effect(c.Errors),
		Headroom: uint64(c.Headroom),
	}
}
