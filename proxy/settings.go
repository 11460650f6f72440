// Settings: what one generation of the configuration asks of the proxy, in plain values.

package proxy

import (
	"time"

	"kvasir/cache"
	"kvasir/classify"
	"kvasir/discovery"
	"kvasir/gpu"
	"kvasir/kvroute"
	"kvasir/peers"
	"kvasir/proxy/hardware"
	"kvasir/tracing/traceparent"
	"kvasir/upstream"
)

// Settings is everything the proxy is told by its configuration. It is plain
// data: Apply turns it into live state, and a Settings is never changed after
// it was handed over.
type Settings struct {
	MaxBody    int64 // bytes of one request body, also after decompression
	BodyMemory int64 // bytes of all of them that are held at once
	Timeouts   Timeouts
	CORS       []string // allowed origins, "*" for any; empty: CORS is off
	Retry      Retry

	// Names under which the listeners may be asked besides their own: the API's,
	// which minds them only on loopback and without keys, "*" for any; and the
	// admin listener's.
	Hosts, AdminHosts []string

	// AdminKey is the SHA-256 of the key that the admin listener asks for; nil: it asks for none.
	AdminKey *[32]byte

	// ReplyHeaders sends the x-kvasir-* family with every reply, VSRHeaders x-vsr-*.
	ReplyHeaders bool
	VSRHeaders   bool
	BIOTypes     bool // x-vsr-pii-types has B- before each type

	Classify classify.Options
	Guards   Guards

	// Cache answers repeats; nil: off. Who made it closes its store, after the
	// proxy has let go of these settings.
	Cache        *cache.Cache
	CacheOptions CacheOptions

	Keys    []Key // empty: everybody may ask
	Workers []Worker
	Models  []Model

	// Sources tells how the sources of discovery fare; nil: there are none. It is called
	// at any time, and must not wait. Conflicts are what they do not agree about, Disagree how
	// many there are.
	Sources   func() []discovery.Status
	Conflicts []string
	Disagree  int

	// Peers are the other Kvasirs before the same workers; nil: nobody looks for any. Who made it
	// closes it, after the proxy. It is the same in all settings of a proxy.
	Peers *peers.Peers

	Routing Routing
	GPU     GPU

	Compatible []string // other systems whose names metrics have, too: of compatible.Systems
	Currency   string   // of prices

	// Tracing gives each request its part in a trace, and says which are sampled; nil: it is off, and
	// what clients say of their traces goes on to workers as it came. Spans are made by an observer.
	Tracing *traceparent.Sampler

	// TraceContent has the records of sampled requests hold what was asked and answered, for their
	// spans.
	TraceContent bool
}

// Timeouts are the clocks of one request. None runs over a whole stream.
type Timeouts struct {
	Header    time.Duration // until a client's request head is complete
	Body      time.Duration // until a client's request body is complete
	Connect   time.Duration // to a worker, TLS included
	FirstByte time.Duration // until the first byte of the worker's body
	Idle      time.Duration // between two reads of the worker's body after that
	Write     time.Duration // for one write to a client or a worker
}

// upstream are the clocks that run toward workers.
func (t *Timeouts) upstream() upstream.Timeouts {
	return upstream.Timeouts{Connect: t.Connect, FirstByte: t.FirstByte, Idle: t.Idle, Write: t.Write}
}

// Guards is how the proxy answers for the guards of Classify.
type Guards struct {
	JailbreakStatus int  // HTTP status of a block; 200: an answer that ends with content_filter; 0: what the request can be told
	PIIStatus       int  // the same
	Restore         bool // redacted values are put back into the answer
	ClientTemplates bool // chat templates of clients are taken
}

// CacheOptions is what the proxy itself decides of Cache.
type CacheOptions struct {
	MaxTemperature float64 // requests above it are not cached; those without one are
	ToolCalls      bool    // answers that call tools are kept too
	Shared         bool    // what one Kvasir keeps the others find

	ScopeHeaders []string // more headers that tell tenants apart, in lower case
}

// Retry bounds what is sent again to another worker.
type Retry struct {
	Attempts int     // retries beyond the first attempt
	Budget   float64 // retries earned by each request
}

// Key is one API key. Only the SHA-256 of the secret is known here.
type Key struct {
	Name              string
	SHA256            [32]byte
	Tenant            string
	Isolate           bool     // the tenant's prompts share no KV blocks with others'
	Models            []string // empty: all
	RequestsPerMinute int      // 0: no limit
	TokensPerMinute   int      // 0: no limit; counted for each model apart
}

// Worker is one engine replica as the configuration names it.
type Worker = upstream.Settings

// Model is what the configuration says of a model name.
type Model struct {
	Name     string
	Default  bool     // what MoM and auto stand for
	Fallback []string // asked instead when no worker of this one is up, or the prompt is too long for it; empty and not nil: none, whoever chose it

	Tokenizer string // where its tokens come from: auto, worker, none, or a directory
	Reasoning string // how its thinking is switched: qwen3, deepseek, gpt-oss, gpt; none: it is not
	Price     Price
}

// Routing is how a worker is chosen among those that serve the model: what the pool
// is told, but for the workers and the pool before it, and what the proxy itself
// decides.
type Routing struct {
	kvroute.PoolOptions

	Queue        bool          // requests wait for a free worker instead of being refused at once
	QueueTimeout time.Duration // how long one may wait
	Overrides    bool          // clients may name workers and weights
}

// GPU is how this host's GPUs are looked at.
type GPU = hardware.Settings

// GPUWorkers are the workers as those are told apart who compute on GPUs.
func (s *Settings) GPUWorkers() []gpu.Worker {
	all := make([]gpu.Worker, len(s.Workers))
	for i, w := range s.Workers {
		all[i] = gpu.Worker{Name: w.Name, GPUs: w.GPUs, Address: w.Address()}
	}
	return all
}
