// Every key of the configuration, with its default, its bounds and whether a change needs a restart.

// Package config reads a configuration: the file, the environment and flags
// become one Config, and whatever is wrong is told all at once, each with its
// file:line:column and what was probably meant. It knows no proxy: what becomes
// of a Config stands in package wiring.
//
//	l := &config.Layers{File: "kvasir.yaml", Environ: os.Environ()}
//	g, read, err := l.Load()
//
// A new key is a field of Config with its tags, a line in config.yaml that says
// what it does, and a line in package wiring that carries it to its user.
// Everything else follows from the tags: the variable of the environment, --set,
// messages, bounds, config.schema.json and docs/configuration.md (go test
// ./config -update), and whether a reload waits for a restart. What no single
// key shows is checked in validate.go and beside it.
package config

import (
	"time"

	"kvasir/classify"
)

// Config is the whole configuration as it was asked for, merged and checked. What
// the keys mean stands in config.yaml. The tags are the contract, and knownKeys
// reads them:
//
//	koanf    the key's name
//	default  its value when nobody sets it, as it would be written in YAML
//	min, max bounds, both allowed
//	words    what a path may be that names no file, divided by spaces
//	also     names that other programs have for it, read as its own, divided by spaces
//	oneof    the values of an enumeration, divided by spaces
//	of       an enumeration whose values are another package's table: a name in tables
//	policy   what the routing policies that look at it have in common: a name in
//	         policyGroups; without: all look at it
//	restart  a change takes effect only after a restart
//	secret   no message quotes what stands there, or under it: it is a key, or
//	         one that somebody put into the wrong place
type Config struct {
	Server   Server     `koanf:"server"`
	Headers  Headers    `koanf:"headers"`
	Keys     []APIKey   `koanf:"keys" secret:"yes"`
	Workers  []Worker   `koanf:"workers"`
	Simulate []Simulate `koanf:"simulate" restart:"yes"`
	Models   []Model    `koanf:"models"`
	Routing  Routing    `koanf:"routing"`

	Discovery []Discovery `koanf:"discovery"`

	Peers Peers `koanf:"peers" restart:"yes"`

	Guards        Guards     `koanf:"guards"`
	Classify      Classify   `koanf:"classify"`
	Signals       []Signal   `koanf:"signals"`
	Decisions     []Decision `koanf:"decisions"`
	DecisionOrder string     `koanf:"decision_order" default:"first" oneof:"first priority"`

	Cache Cache `koanf:"cache"`

	GPU GPU `koanf:"gpu"`

	Planner Planner `koanf:"planner" restart:"yes"`

	Metrics Metrics `koanf:"metrics"`

	Tracing Tracing `koanf:"tracing"`

	Log Log `koanf:"log"`
}

// Server is how clients and operators reach Kvasir, and the limits of what they
// may send.
type Server struct {
	Listen     string   `koanf:"listen" default:"127.0.0.1:8080" restart:"yes"`
	Admin      string   `koanf:"admin" default:"127.0.0.1:9090" restart:"yes"`
	MaxBody    Size     `koanf:"max_body" default:"32MiB" min:"1" max:"4GiB"`
	BodyMemory Size     `koanf:"body_memory" default:"0" min:"0" max:"1TiB"`
	Timeouts   Timeouts `koanf:"timeouts"`
	CORS       []string `koanf:"cors"`
	Hosts      []string `koanf:"hosts"`
	AdminHosts []string `koanf:"admin_hosts"`
	AdminKey   Path     `koanf:"admin_key_file" secret:"yes"`
	Drain      Drain    `koanf:"drain"`
	TLS        TLS      `koanf:"tls"`
	Retry      Retry    `koanf:"retry"`
}

// Timeouts are the longest waits within a request; none of them bounds a whole
// stream.
type Timeouts struct {
	Header    time.Duration `koanf:"header" default:"10s" min:"1ms" max:"24h" restart:"yes"`
	Body      time.Duration `koanf:"body" default:"60s" min:"1ms" max:"24h"`
	Connect   time.Duration `koanf:"connect" default:"2s" min:"1ms" max:"24h"`
	FirstByte time.Duration `koanf:"first_byte" default:"120s" min:"1ms" max:"24h"`
	Idle      time.Duration `koanf:"idle" default:"60s" min:"1ms" max:"24h"`
	Write     time.Duration `koanf:"write" default:"30s" min:"1ms" max:"24h"`
}

// Drain is how Kvasir stops: after Delay it takes no new request, and those that
// run have Timeout to finish.
type Drain struct {
	Delay   time.Duration `koanf:"delay" default:"2s" min:"0s" max:"1h"`
	Timeout time.Duration `koanf:"timeout" default:"60s" min:"0s" max:"24h"`
}

// TLS is that of a listener; without a certificate it is plain HTTP.
type TLS struct {
	Cert     Path `koanf:"cert"`
	Key      Path `koanf:"key"`
	ClientCA Path `koanf:"client_ca"`
}

// Retry bounds what is sent again to another worker: Attempts retries of one
// request, and Budget retries earned by each request, 0.2 being one in five.
type Retry struct {
	Attempts int     `koanf:"attempts" default:"2" min:"0" max:"10"`
	Budget   float64 `koanf:"budget" default:"0.2" min:"0" max:"1"`
}

// Headers says which families of reply headers are sent.
type Headers struct {
	VSR    bool `koanf:"vsr" default:"true"`
	Kvasir bool `koanf:"kvasir" default:"true"`

	PIITypes string `koanf:"pii_types" default:"plain" oneof:"plain bio"`
}

// APIKey is one key that clients may show; SHA256 is its sum in hex, KeyFile a
// file that holds it.
type APIKey struct {
	Name              string   `koanf:"name"`
	SHA256            string   `koanf:"sha256"`
	KeyFile           Path     `koanf:"key_file"`
	Tenant            string   `koanf:"tenant"`
	Isolate           bool     `koanf:"isolate" default:"false"`
	Models            []string `koanf:"models"`
	RequestsPerMinute int      `koanf:"requests_per_minute" default:"0" min:"0" max:"1000000000"`
	TokensPerMinute   int      `koanf:"tokens_per_minute" default:"0" min:"0" max:"1000000000000"`
}

// Worker is one replica of an engine. Empty lists and names are found out by
// asking it.
type Worker struct {
	Name        string            `koanf:"name"`
	URL         string            `koanf:"url"`
	Engine      string            `koanf:"engine" of:"engines"`
	Role        string            `koanf:"role" default:"both" oneof:"both prefill decode"`
	Models      []string          `koanf:"models"`
	MaxRequests int               `koanf:"max_requests" default:"0" min:"0" max:"1000000"`
	Headers     map[string]string `koanf:"headers" secret:"yes"`
	KeyFile     Path              `koanf:"key_file" secret:"yes"`
	TLS         PeerTLS           `koanf:"tls"`
	KVEvents    string            `koanf:"kv_events"`
	KVReplay    string            `koanf:"kv_replay"`
	Instance    string            `koanf:"instance"`
	GPUs        []string          `koanf:"gpus"`
}

// Discovery is one source of workers, and what a worker is where its source does
// not say.
type Discovery struct {
	Kind         string        `koanf:"kind" of:"sources"`
	Path         Path          `koanf:"path"`
	Name         string        `koanf:"name"`
	Namespace    string        `koanf:"namespace"`
	Selector     string        `koanf:"selector"`
	Pool         string        `koanf:"inference_pool"`
	Port         string        `koanf:"port"`
	Kubeconfig   Path          `koanf:"kubeconfig"`
	Scheme       string        `koanf:"scheme" default:"http" oneof:"http https"`
	Refresh      time.Duration `koanf:"refresh" default:"5s" min:"1s" max:"1h"`
	Server       string        `koanf:"server"`
	Endpoints    []string      `koanf:"endpoints"`
	Prefix       string        `koanf:"prefix" default:"kvasir/workers/"`
	Frontend     string        `koanf:"frontend"`
	User         string        `koanf:"user"`
	PasswordFile Path          `koanf:"password_file" secret:"yes"`
	Grace        time.Duration `koanf:"grace" default:"10s" min:"0s" max:"1h"`
	Engine       string        `koanf:"engine" of:"engines"`
	Role         string        `koanf:"role" default:"both" oneof:"both prefill decode"`
	Models       []string      `koanf:"models"`
	MaxRequests  int           `koanf:"max_requests" default:"0" min:"0" max:"1000000"`
	KeyFile      Path          `koanf:"key_file" secret:"yes"`
	TLS          PeerTLS       `koanf:"tls"`
}

// Peers is how this Kvasir knows of others before the same workers: by NATS servers, or by one
// inside that is clustered with theirs.
type Peers struct {
	Servers   []string   `koanf:"servers"`
	Group     string     `koanf:"group" default:"kvasir"`
	Name      string     `koanf:"name"`
	TokenFile Path       `koanf:"token_file" secret:"yes"`
	CredsFile Path       `koanf:"creds_file" secret:"yes"`
	NkeyFile  Path       `koanf:"nkey_file" secret:"yes"`
	TLS       PeerTLS    `koanf:"tls"`
	Embed     PeersEmbed `koanf:"embed"`
}

// PeersEmbed is the NATS server inside.
type PeersEmbed struct {
	Listen string   `koanf:"listen"`
	Routes []string `koanf:"routes"`
}

// On says whether it is to know of any.
func (p *Peers) On() bool { return len(p.Servers) > 0 || p.Embed.Listen != "" }

// Tracing is where traces of requests go, and of which.
type Tracing struct {
	Endpoint string            `koanf:"endpoint"`
	Protocol string            `koanf:"protocol" default:"http" oneof:"http grpc"`
	Headers  map[string]string `koanf:"headers" secret:"yes"`
	Sampler  string            `koanf:"sampler" default:"parent" oneof:"parent ratio always never"`
	Ratio    float64           `koanf:"ratio" default:"1" min:"0" max:"1"`
	Content  bool              `koanf:"content" default:"false"`
	TLS      PeerTLS           `koanf:"tls"`
}

// PeerTLS is the TLS of a peer that is connected to: a worker, Milvus, NATS, or a collector.
type PeerTLS struct {
	CA         Path   `koanf:"ca"`
	Cert       Path   `koanf:"cert"`
	Key        Path   `koanf:"key"`
	ServerName string `koanf:"server_name"`
	Insecure   bool   `koanf:"insecure" default:"false"`
}

// Simulate is one engine inside this process.
type Simulate struct {
	Name             string   `koanf:"name"`
	Engine           string   `koanf:"engine" default:"vllm" oneof:"vllm sglang trtllm"`
	Role             string   `koanf:"role" default:"both" oneof:"both prefill decode"`
	Model            string   `koanf:"model" default:"sim"`
	BlockSize        int      `koanf:"block_size" default:"16" min:"1" max:"4096"`
	Blocks           int      `koanf:"blocks" default:"16384" min:"1" max:"16777216"`
	MaxBatchedTokens int      `koanf:"max_batched_tokens" default:"8192" min:"1" max:"16777216"`
	MaxSeqs          int      `koanf:"max_seqs" default:"256" min:"1" max:"65536"`
	MaxModelLen      int      `koanf:"max_model_len" default:"32768" min:"2" max:"16777216"`
	Speedup          float64  `koanf:"speedup" default:"1" min:"0.000001" max:"1000000"`
	Seed             int      `koanf:"seed" default:"0" min:"0"`
	Faults           bool     `koanf:"faults" default:"false"`
	Events           bool     `koanf:"events" default:"true"`
	GPUs             []string `koanf:"gpus"`
}

// Model is what cannot be found out about a model by asking its workers.
type Model struct {
	Name      string   `koanf:"name"`
	Default   bool     `koanf:"default" default:"false"`
	Fallback  []string `koanf:"fallback"`
	Tokenizer Path     `koanf:"tokenizer" default:"auto" words:"auto worker none"`
	Reasoning string   `koanf:"reasoning" default:"none" oneof:"qwen3 deepseek gpt-oss gpt none"`
	Price     Price    `koanf:"price"`
}

// Price is what a million tokens cost, in metrics.currency. Cached are those of the prompt that the
// worker had in its cache.
type Price struct {
	Prompt     float64 `koanf:"prompt" default:"0" min:"0" max:"1000000000"`
	Completion float64 `koanf:"completion" default:"0" min:"0" max:"1000000000"`
	Cached     float64 `koanf:"cached" default:"-1" min:"-1" max:"1000000000"`
}

// Routing is how workers are chosen.
type Routing struct {
	Policy           string        `koanf:"policy" default:"predict" of:"policies"`
	Queue            string        `koanf:"queue" default:"auto" oneof:"auto off"`
	MaxQueued        int           `koanf:"max_queued" default:"1024" min:"1" max:"1000000"`
	QueueTimeout     time.Duration `koanf:"queue_timeout" default:"30s" min:"1ms" max:"24h"`
	PrefillLoadScale float64       `koanf:"prefill_load_scale" default:"1" min:"0" max:"1000" policy:"weighed" also:"overlap_score_weight kv_overlap_score_weight"`
	OverlapCredit    OverlapCredit `koanf:"overlap_credit"`
	Temperature      float64       `koanf:"temperature" default:"0" min:"0" max:"100" policy:"priced" also:"router_temperature"`
	Disaggregate     string        `koanf:"disaggregate" default:"auto" of:"disaggregate"`
	Overrides        bool          `koanf:"overrides" default:"true"`
}

// OverlapCredit is what a block that a worker holds already is worth to policy
// kv, by where it lies.
type OverlapCredit struct {
	Device float64 `koanf:"device" default:"1" min:"0" max:"100" policy:"weighed"`
	Host   float64 `koanf:"host" default:"0.75" min:"0" max:"100" policy:"weighed"`
	Disk   float64 `koanf:"disk" default:"0.25" min:"0" max:"100" policy:"weighed"`
}

// Guards says which things clients may send that change how a prompt is put
// together.
type Guards struct {
	ClientTemplates string `koanf:"client_templates" default:"refuse" oneof:"refuse allow"`
}

// Classify is what is found out about every request.
type Classify struct {
	Timeout     time.Duration `koanf:"timeout" default:"1s" min:"1ms" max:"1m"`
	Threads     int           `koanf:"threads" default:"0" min:"0" max:"1024"`
	Models      Path          `koanf:"models"`
	SecondStage string        `koanf:"second_stage" default:"on" oneof:"on off"`
	Category    Category      `koanf:"category"`
	Jailbreak   Jailbreak     `koanf:"jailbreak"`
	PII         PII           `koanf:"pii"`
	Embedding   Embedding     `koanf:"embedding"`
}

// Category is how certain the category of a request must be to count.
type Category struct {
	Threshold float64           `koanf:"threshold" default:"0.6" min:"0.001" max:"1"`
	Model     Path              `koanf:"model"`
	Labels    map[string]string `koanf:"labels"`
	Combine   string            `koanf:"combine" default:"replace" oneof:"replace max"`
}

// Jailbreak is what happens to attempts to talk a model out of its rules.
type Jailbreak struct {
	Action    string            `koanf:"action" default:"annotate" oneof:"block annotate off"`
	Threshold float64           `koanf:"threshold" default:"0.7" min:"0.001" max:"1"`
	OnError   string            `koanf:"on_error" default:"refuse" oneof:"refuse allow"`
	Model     Path              `koanf:"model"`
	Labels    map[string]string `koanf:"labels"`
	Combine   string            `koanf:"combine" default:"replace" oneof:"replace max"`
	Status    string            `koanf:"status" default:"auto" oneof:"auto 200 400 403 422 451"`
}

// PII is what happens to personal data; Allow is nil where nobody sets it, which
// is not the same as empty.
type PII struct {
	Action    string            `koanf:"action" default:"block" oneof:"block redact annotate off"`
	Threshold float64           `koanf:"threshold" default:"0.7" min:"0.001" max:"1"`
	Allow     []string          `koanf:"allow"`
	OnError   string            `koanf:"on_error" default:"refuse" oneof:"refuse allow"`
	Model     Path              `koanf:"model"`
	Labels    map[string]string `koanf:"labels"`
	Combine   string            `koanf:"combine" default:"replace" oneof:"replace max"`
	Restore   bool              `koanf:"restore" default:"false"`
	Status    string            `koanf:"status" default:"auto" oneof:"auto 200 400 403 422 451"`
}

// Embedding is what the sentence embedding is made with.
type Embedding struct {
	Model Path `koanf:"model" restart:"yes"`
}

// Signal is one more fact to decide by; which keys are set says of what kind it
// is.
type Signal struct {
	Name          string         `koanf:"name"`
	Keywords      []string       `koanf:"keywords"`
	Method        string         `koanf:"method" oneof:"exact regex fuzzy bm25"`
	Operator      string         `koanf:"operator" oneof:"any all none"`
	CaseSensitive bool           `koanf:"case_sensitive" default:"false"`
	Phrases       []string       `koanf:"phrases"`
	Aggregate     string         `koanf:"aggregate" oneof:"max mean any"`
	Threshold     float64        `koanf:"threshold" min:"0" max:"1000"`
	Bounds        map[string]any `koanf:",remain"` // of measures, by the keys of classify.Makings
}

// A Range asks for a count within bounds, both included. Max -1 is no upper bound;
// without any bound it asks for nothing.
type Range struct {
	Min float64 `koanf:"min" default:"0" min:"0"`
	Max float64 `koanf:"max" default:"-1" min:"-1"`
}

// Decision is what follows where its condition holds.
type Decision struct {
	Name             string             `koanf:"name"`
	When             classify.Condition `koanf:"when"`
	Priority         int                `koanf:"priority" default:"0"`
	AppliesTo        string             `koanf:"applies_to" default:"auto" oneof:"auto all"`
	Model            string             `koanf:"model"`
	Reasoning        string             `koanf:"reasoning" oneof:"true false on off minimal low medium high xhigh"`
	SystemPrompt     string             `koanf:"system_prompt"`
	SystemPromptMode string             `koanf:"system_prompt_mode" default:"replace" oneof:"replace insert"`
	PII              DecisionPII        `koanf:"pii"`
	Cache            DecisionCache      `koanf:"cache"`
	Refuse           string             `koanf:"refuse"`
	MaxTokens        int                `koanf:"max_tokens" default:"0" min:"0" max:"16777216"`
	MaxTemperature   float64            `koanf:"max_temperature" min:"0" max:"2"`
	MaxChoices       int                `koanf:"max_choices" default:"0" min:"0" max:"1024"`
}

// DecisionPII is what personal data may pass where a decision is taken.
type DecisionPII struct {
	Allow []string `koanf:"allow"`
}

// DecisionCache is how the cache serves where a decision is taken; threshold 0:
// that of the cache.
type DecisionCache struct {
	Enabled   bool    `koanf:"enabled" default:"true"`
	Threshold float64 `koanf:"threshold" default:"0" min:"0" max:"1"`
}

// Cache is which answers are kept, where, and when they answer again.
type Cache struct {
	Store          string        `koanf:"store" default:"embedded" oneof:"embedded milvus off" restart:"yes"`
	Path           Path          `koanf:"path" restart:"yes"`
	Threshold      float64       `koanf:"threshold" default:"0.9" min:"0.001" max:"1"`
	MaxTemperature float64       `koanf:"max_temperature" default:"1.0" min:"0" max:"100"`
	ToolCalls      bool          `koanf:"tool_calls" default:"false"`
	ScopeHeaders   []string      `koanf:"scope_headers"`
	TTL            time.Duration `koanf:"ttl" default:"1h" min:"1s" max:"87600h"`
	MaxEntries     int           `koanf:"max_entries" default:"100000" min:"1" max:"100000000" restart:"yes"`
	MaxBytes       Size          `koanf:"max_bytes" default:"1GiB" min:"1MiB" max:"16TiB" restart:"yes"`
	Milvus         Milvus        `koanf:"milvus" restart:"yes"`
}

// Milvus is the store of cache.store: milvus.
type Milvus struct {
	Address    string        `koanf:"address" default:"127.0.0.1:19530"`
	Collection string        `koanf:"collection" default:"kvasir"`
	Token      string        `koanf:"token" secret:"yes"`
	KeyFile    Path          `koanf:"key_file" secret:"yes"`
	Timeout    time.Duration `koanf:"timeout" default:"20ms" min:"1ms" max:"10s"`
	TLS        PeerTLS       `koanf:"tls"`
}

// GPU is the telemetry of this host's GPUs, and what their conditions do to
// placement.
type GPU struct {
	Mode      string        `koanf:"mode" default:"auto" oneof:"auto off"`
	Interval  time.Duration `koanf:"interval" default:"250ms" min:"50ms" max:"10s"`
	Throttle  string        `koanf:"throttle" default:"cost" oneof:"cost aside off"`
	Neighbour string        `koanf:"neighbour" default:"cost" oneof:"cost aside off"`
	Memory    string        `koanf:"memory" default:"cost" oneof:"cost aside off"`
	Errors    string        `koanf:"errors" default:"aside" oneof:"cost aside off"`
	Headroom  Size          `koanf:"headroom" default:"256MiB" min:"0" max:"1TiB"`
}

// Planner is how many workers there should be: what is to be kept, within which bounds, and what is done about it.
type Planner struct {
	Mode           string        `koanf:"mode" default:"auto" oneof:"auto off advise apply"`
	Model          string        `koanf:"model"`
	TargetTTFT     int           `koanf:"target_ttft_ms" default:"500" min:"1" max:"3600000"`
	TargetITL      int           `koanf:"target_itl_ms" default:"50" min:"1" max:"3600000"`
	Share          float64       `koanf:"share" default:"0.95" min:"0.01" max:"0.9999"`
	Min            int           `koanf:"min_workers" default:"1" min:"1" max:"2048"`
	Max            int           `koanf:"max_workers" default:"64" min:"1" max:"2048"`
	Window         time.Duration `koanf:"window" default:"10m" min:"10s" max:"24h"`
	Interval       time.Duration `koanf:"interval" default:"1m" min:"1s" max:"24h"`
	StartTime      time.Duration `koanf:"start_time" default:"1m" min:"1s" max:"24h"`
	DownAfter      time.Duration `koanf:"down_after" default:"5m" min:"1s" max:"168h"`
	Pace           float64       `koanf:"pace" default:"0" min:"0" max:"1000"`
	MostPlayed     int           `koanf:"most_played" default:"5000" min:"100" max:"1000000"`
	Budget         time.Duration `koanf:"budget" default:"20s" min:"100ms" max:"1h"`
	Memory         Size          `koanf:"memory" default:"16MiB" min:"64KiB" max:"16GiB"`
	Command        []string      `koanf:"command"`
	CommandTimeout time.Duration `koanf:"command_timeout" default:"1m" min:"1s" max:"1h"`

	Kubernetes PlannerKubernetes `koanf:"kubernetes"`
	KEDA       KEDA              `koanf:"keda"`
}

// KEDA is where the planner answers KEDA, as an external scaler.
type KEDA struct {
	Listen string `koanf:"listen"`
	TLS    TLS    `koanf:"tls"`
}

// PlannerKubernetes is what the planner scales in Kubernetes: the targets of roles, as planner/scale reads them.
type PlannerKubernetes struct {
	Both       string `koanf:"both"`
	Prefill    string `koanf:"prefill"`
	Decode     string `koanf:"decode"`
	Namespace  string `koanf:"namespace"`
	Kubeconfig Path   `koanf:"kubeconfig"`
	Lease      string `koanf:"lease"`
}

// Metrics says which other systems' names metrics have beside their own, and what prices are in.
type Metrics struct {
	Compatible []string `koanf:"compatible" of:"systems"`
	Currency   string   `koanf:"currency" default:"USD"`
}

// Log is what is logged, and in which form.
type Log struct {
	Level  string `koanf:"level" default:"info" oneof:"trace debug info warn error"`
	Format string `koanf:"format" default:"auto" oneof:"auto pretty json" restart:"yes"`
}

// A Size is a number of bytes, written 32MiB, 64KB or plain.
type Size int64

// A Path names a file. In a configuration file a relative one starts at
// that file's directory, elsewhere at the working directory.
type Path string
