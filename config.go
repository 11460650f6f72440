// Config: every key of the configuration, with its default, its bounds and whether a change needs a restart.
package main

import (
	"time"

	"kvasir/classify"
)

// Config is the whole configuration as it was asked for, merged and checked;
// proxy.Settings is what becomes of it. The tags are the contract, and
// knownKeys reads them:
//
//	koanf    the key's name
//	default  its value when nobody sets it, as it would be written in YAML
//	min, max bounds, both allowed
//	words    what a path may be that names no file, divided by spaces
//	oneof    the values of an enumeration, divided by spaces
//	restart  a change takes effect only after a restart
//	secret   no message quotes what stands there, or under it: it is a key, or
//	         one that somebody put into the wrong place
type Config struct {
	Server   serverConfig     `koanf:"server"`
	Headers  headersConfig    `koanf:"headers"`
	Keys     []keyConfig      `koanf:"keys" secret:"yes"`
	Workers  []workerConfig   `koanf:"workers"`
	Simulate []simulateConfig `koanf:"simulate" restart:"yes"`
	Models   []modelConfig    `koanf:"models"`
	Routing  routingConfig    `koanf:"routing"`

	Guards        guardsConfig     `koanf:"guards"`
	Classify      classifyConfig   `koanf:"classify"`
	Signals       []signalConfig   `koanf:"signals"`
	Decisions     []decisionConfig `koanf:"decisions"`
	DecisionOrder string           `koanf:"decision_order" default:"first" oneof:"first priority"`

	Cache cacheConfig `koanf:"cache"`

	GPU gpuConfig `koanf:"gpu"`

	Log logConfig `koanf:"log"`
}

type serverConfig struct {
	Listen     string         `koanf:"listen" default:"127.0.0.1:8080" restart:"yes"`
	Admin      string         `koanf:"admin" default:"127.0.0.1:9090" restart:"yes"`
	MaxBody    size           `koanf:"max_body" default:"32MiB" min:"1" max:"4GiB"`
	BodyMemory size           `koanf:"body_memory" default:"0" min:"0" max:"1TiB"`
	Timeouts   timeoutsConfig `koanf:"timeouts"`
	CORS       []string       `koanf:"cors"`
	Hosts      []string       `koanf:"hosts"`
	AdminHosts []string       `koanf:"admin_hosts"`
	Drain      drainConfig    `koanf:"drain"`
	TLS        tlsConfig      `koanf:"tls"`
	Retry      retryConfig    `koanf:"retry"`
}

type timeoutsConfig struct {
	Header    time.Duration `koanf:"header" default:"10s" min:"1ms" max:"24h" restart:"yes"`
	Body      time.Duration `koanf:"body" default:"60s" min:"1ms" max:"24h"`
	Connect   time.Duration `koanf:"connect" default:"2s" min:"1ms" max:"24h"`
	FirstByte time.Duration `koanf:"first_byte" default:"120s" min:"1ms" max:"24h"`
	Idle      time.Duration `koanf:"idle" default:"60s" min:"1ms" max:"24h"`
	Write     time.Duration `koanf:"write" default:"30s" min:"1ms" max:"24h"`
}

type drainConfig struct {
	Delay   time.Duration `koanf:"delay" default:"2s" min:"0s" max:"1h"`
	Timeout time.Duration `koanf:"timeout" default:"60s" min:"0s" max:"24h"`
}

type tlsConfig struct {
	Cert     filePath `koanf:"cert"`
	Key      filePath `koanf:"key"`
	ClientCA filePath `koanf:"client_ca"`
}

type retryConfig struct {
	Attempts int     `koanf:"attempts" default:"2" min:"0" max:"10"`
	Budget   float64 `koanf:"budget" default:"0.2" min:"0" max:"1"`
}

type headersConfig struct {
	VSR    bool `koanf:"vsr" default:"true"`
	Kvasir bool `koanf:"kvasir" default:"true"`
}

type keyConfig struct {
	Name              string   `koanf:"name"`
	SHA256            string   `koanf:"sha256"`
	KeyFile           filePath `koanf:"key_file"`
	Tenant            string   `koanf:"tenant"`
	Isolate           bool     `koanf:"isolate" default:"false"`
	Models            []string `koanf:"models"`
	RequestsPerMinute int      `koanf:"requests_per_minute" default:"0" min:"0" max:"1000000000"`
	TokensPerMinute   int      `koanf:"tokens_per_minute" default:"0" min:"0" max:"1000000000000"`
}

type workerConfig struct {
	Name        string            `koanf:"name"`
	URL         string            `koanf:"url"`
	Engine      string            `koanf:"engine" oneof:"vllm sglang trtllm dynamo openai"`
	Role        string            `koanf:"role" default:"both" oneof:"both prefill decode"`
	Models      []string          `koanf:"models"`
	MaxRequests int               `koanf:"max_requests" default:"0" min:"0" max:"1000000"`
	Headers     map[string]string `koanf:"headers" secret:"yes"`
	KeyFile     filePath          `koanf:"key_file" secret:"yes"`
	TLS         workerTLSConfig   `koanf:"tls"`
	KVEvents    string            `koanf:"kv_events"`
	KVReplay    string            `koanf:"kv_replay"`
	Instance    string            `koanf:"instance"`
	GPUs        []string          `koanf:"gpus"`
}

type workerTLSConfig struct {
	CA         filePath `koanf:"ca"`
	Cert       filePath `koanf:"cert"`
	Key        filePath `koanf:"key"`
	ServerName string   `koanf:"server_name"`
	Insecure   bool     `koanf:"insecure" default:"false"`
}

type simulateConfig struct {
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

type modelConfig struct {
	Name      string   `koanf:"name"`
	Default   bool     `koanf:"default" default:"false"`
	Fallback  []string `koanf:"fallback"`
	Tokenizer filePath `koanf:"tokenizer" default:"auto" words:"auto worker none"`
	Reasoning string   `koanf:"reasoning" default:"none" oneof:"qwen3 deepseek gpt-oss gpt none"`
}

type routingConfig struct {
	Policy           string              `koanf:"policy" default:"predict" oneof:"predict kv round_robin random least_loaded p2c"`
	Queue            string              `koanf:"queue" default:"auto" oneof:"auto off"`
	MaxQueued        int                 `koanf:"max_queued" default:"1024" min:"1" max:"1000000"`
	QueueTimeout     time.Duration       `koanf:"queue_timeout" default:"30s" min:"1ms" max:"24h"`
	PrefillLoadScale float64             `koanf:"prefill_load_scale" default:"1" min:"0" max:"1000"`
	OverlapCredit    overlapCreditConfig `koanf:"overlap_credit"`
	Temperature      float64             `koanf:"temperature" default:"0" min:"0" max:"100"`
	Disaggregate     string              `koanf:"disaggregate" default:"auto" oneof:"auto always never"`
	Overrides        bool                `koanf:"overrides" default:"true"`
}

type overlapCreditConfig struct {
	Device float64 `koanf:"device" default:"1" min:"0" max:"100"`
	Host   float64 `koanf:"host" default:"0.75" min:"0" max:"100"`
	Disk   float64 `koanf:"disk" default:"0.25" min:"0" max:"100"`
}

type guardsConfig struct {
	ClientTemplates string `koanf:"client_templates" default:"refuse" oneof:"refuse allow"`
}

type classifyConfig struct {
	Timeout   time.Duration   `koanf:"timeout" default:"1s" min:"1ms" max:"1m"`
	Threads   int             `koanf:"threads" default:"0" min:"0" max:"1024"`
	Models    filePath        `koanf:"models"`
	Category  categoryConfig  `koanf:"category"`
	Jailbreak jailbreakConfig `koanf:"jailbreak"`
	PII       piiConfig       `koanf:"pii"`
}

type categoryConfig struct {
	Threshold float64 `koanf:"threshold" default:"0.6" min:"0.001" max:"1"`
}

type jailbreakConfig struct {
	Action    string  `koanf:"action" default:"annotate" oneof:"block annotate off"`
	Threshold float64 `koanf:"threshold" default:"0.7" min:"0.001" max:"1"`
	OnError   string  `koanf:"on_error" default:"refuse" oneof:"refuse allow"`
	Status    int     `koanf:"status" default:"200" min:"200" max:"599"`
}

type piiConfig struct {
	Action    string   `koanf:"action" default:"block" oneof:"block redact annotate off"`
	Threshold float64  `koanf:"threshold" default:"0.7" min:"0.001" max:"1"`
	Allow     []string `koanf:"allow"`
	OnError   string   `koanf:"on_error" default:"refuse" oneof:"refuse allow"`
	Restore   bool     `koanf:"restore" default:"false"`
	Status    int      `koanf:"status" default:"200" min:"200" max:"599"`
}

type signalConfig struct {
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

// A rangeConfig asks for a count within bounds, both included. Without any it asks for nothing.
type rangeConfig struct {
	Min float64 `koanf:"min" default:"0" min:"0"`
	Max float64 `koanf:"max" default:"-1" min:"-1"`
}

type decisionConfig struct {
	Name             string             `koanf:"name"`
	When             classify.Condition `koanf:"when"`
	Priority         int                `koanf:"priority" default:"0"`
	AppliesTo        string             `koanf:"applies_to" default:"auto" oneof:"auto all"`
	Model            string             `koanf:"model"`
	Reasoning        string             `koanf:"reasoning" oneof:"true false on off minimal low medium high xhigh"`
	SystemPrompt     string             `koanf:"system_prompt"`
	SystemPromptMode string             `koanf:"system_prompt_mode" default:"replace" oneof:"replace insert"`
	PII              decisionPIIConfig  `koanf:"pii"`
	Cache            decisionCache      `koanf:"cache"`
	Refuse           string             `koanf:"refuse"`
	MaxTokens        int                `koanf:"max_tokens" default:"0" min:"0" max:"16777216"`
	MaxTemperature   float64            `koanf:"max_temperature" min:"0" max:"2"`
	MaxChoices       int                `koanf:"max_choices" default:"0" min:"0" max:"1024"`
}

type decisionPIIConfig struct {
	Allow []string `koanf:"allow"`
}

type decisionCache struct {
	Enabled   bool    `koanf:"enabled" default:"true"`
	Threshold float64 `koanf:"threshold" default:"0" min:"0" max:"1"`
}

type cacheConfig struct {
	Store          string        `koanf:"store" default:"embedded" oneof:"embedded milvus off" restart:"yes"`
	Path           filePath      `koanf:"path" restart:"yes"`
	Threshold      float64       `koanf:"threshold" default:"0.9" min:"0.001" max:"1"`
	MaxTemperature float64       `koanf:"max_temperature" default:"1.0" min:"0" max:"100"`
	ToolCalls      bool          `koanf:"tool_calls" default:"false"`
	ScopeHeaders   []string      `koanf:"scope_headers"`
	TTL            time.Duration `koanf:"ttl" default:"1h" min:"1s" max:"87600h"`
	MaxEntries     int           `koanf:"max_entries" default:"100000" min:"1" max:"100000000" restart:"yes"`
	MaxBytes       size          `koanf:"max_bytes" default:"1GiB" min:"1MiB" max:"16TiB" restart:"yes"`
	Milvus         milvusConfig  `koanf:"milvus" restart:"yes"`
}

type milvusConfig struct {
	Address    string          `koanf:"address" default:"127.0.0.1:19530"`
	Collection string          `koanf:"collection" default:"kvasir"`
	Token      string          `koanf:"token" secret:"yes"`
	KeyFile    filePath        `koanf:"key_file" secret:"yes"`
	Timeout    time.Duration   `koanf:"timeout" default:"20ms" min:"1ms" max:"10s"`
	TLS        workerTLSConfig `koanf:"tls"`
}

type gpuConfig struct {
	Mode      string        `koanf:"mode" default:"auto" oneof:"auto off"`
	Interval  time.Duration `koanf:"interval" default:"250ms" min:"50ms" max:"10s"`
	Throttle  string        `koanf:"throttle" default:"cost" oneof:"cost aside off"`
	Neighbour string        `koanf:"neighbour" default:"cost" oneof:"cost aside off"`
	Memory    string        `koanf:"memory" default:"cost" oneof:"cost aside off"`
	Errors    string        `koanf:"errors" default:"aside" oneof:"cost aside off"`
	Headroom  size          `koanf:"headroom" default:"256MiB" min:"0" max:"1TiB"`
}

type logConfig struct {
	Level  string `koanf:"level" default:"info" oneof:"trace debug info warn error"`
	Format string `koanf:"format" default:"auto" oneof:"auto pretty json" restart:"yes"`
}

// A size is a number of bytes, written 32MiB, 64KB or plain.
type size int64

// A filePath names a file. In a configuration file a relative one starts at
// that file's directory, elsewhere at the working directory.
type filePath string
