// Config: every key of the configuration, with its default, its bounds and whether a change needs a restart.
package main

import "time"

// Config is the whole configuration as it was asked for, merged and checked;
// proxy.Settings is what becomes of it. The tags are the contract, and
// knownKeys reads them:
//
//	koanf    the key's name
//	default  its value when nobody sets it, as it would be written in YAML
//	min, max bounds, both allowed
//	oneof    the values of an enumeration, divided by spaces
//	restart  a change takes effect only after a restart
//	secret   no message quotes what stands there, or under it: it is a key, or
//	         one that somebody put into the wrong place
//
// Keys that belong to rooms not built yet stand in notBuiltIn, not here.
type Config struct {
	Server   serverConfig     `koanf:"server"`
	Headers  headersConfig    `koanf:"headers"`
	Keys     []keyConfig      `koanf:"keys" secret:"yes"`
	Workers  []workerConfig   `koanf:"workers"`
	Simulate []simulateConfig `koanf:"simulate" restart:"yes"`
	Models   []modelConfig    `koanf:"models"`
	Routing  routingConfig    `koanf:"routing"`
	Log      logConfig        `koanf:"log"`
}

type serverConfig struct {
	Listen   string         `koanf:"listen" default:"127.0.0.1:8080" restart:"yes"`
	Admin    string         `koanf:"admin" default:"127.0.0.1:9090" restart:"yes"`
	MaxBody  size           `koanf:"max_body" default:"32MiB" min:"1" max:"4GiB"`
	Timeouts timeoutsConfig `koanf:"timeouts"`
	CORS     []string       `koanf:"cors"`
	Drain    drainConfig    `koanf:"drain"`
	TLS      tlsConfig      `koanf:"tls"`
	Retry    retryConfig    `koanf:"retry"`
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
	Kvasir bool `koanf:"kvasir" default:"true"`
}

type keyConfig struct {
	Name              string   `koanf:"name"`
	SHA256            string   `koanf:"sha256"`
	KeyFile           filePath `koanf:"key_file"`
	Tenant            string   `koanf:"tenant"`
	Models            []string `koanf:"models"`
	RequestsPerMinute int      `koanf:"requests_per_minute" default:"0" min:"0" max:"1000000000"`
	TokensPerMinute   int      `koanf:"tokens_per_minute" default:"0" min:"0" max:"1000000000000"`
}

type workerConfig struct {
	Name        string            `koanf:"name"`
	URL         string            `koanf:"url"`
	Engine      string            `koanf:"engine" oneof:"vllm sglang trtllm openai"`
	Role        string            `koanf:"role" default:"both" oneof:"both prefill decode"`
	Models      []string          `koanf:"models"`
	MaxRequests int               `koanf:"max_requests" default:"0" min:"0" max:"1000000"`
	Headers     map[string]string `koanf:"headers" secret:"yes"`
	KeyFile     filePath          `koanf:"key_file" secret:"yes"`
	TLS         workerTLSConfig   `koanf:"tls"`
}

type workerTLSConfig struct {
	CA         filePath `koanf:"ca"`
	Cert       filePath `koanf:"cert"`
	Key        filePath `koanf:"key"`
	ServerName string   `koanf:"server_name"`
	Insecure   bool     `koanf:"insecure" default:"false"`
}

type simulateConfig struct {
	Name             string  `koanf:"name"`
	Role             string  `koanf:"role" default:"both" oneof:"both prefill decode"`
	Model            string  `koanf:"model" default:"sim"`
	BlockSize        int     `koanf:"block_size" default:"16" min:"1" max:"4096"`
	Blocks           int     `koanf:"blocks" default:"16384" min:"1" max:"16777216"`
	MaxBatchedTokens int     `koanf:"max_batched_tokens" default:"8192" min:"1" max:"16777216"`
	MaxSeqs          int     `koanf:"max_seqs" default:"256" min:"1" max:"65536"`
	MaxModelLen      int     `koanf:"max_model_len" default:"32768" min:"2" max:"16777216"`
	Speedup          float64 `koanf:"speedup" default:"1" min:"0.000001" max:"1000000"`
	Seed             int     `koanf:"seed" default:"0" min:"0"`
	Faults           bool    `koanf:"faults" default:"false"`
}

type modelConfig struct {
	Name     string   `koanf:"name"`
	Default  bool     `koanf:"default" default:"false"`
	Fallback []string `koanf:"fallback"`
}

type routingConfig struct {
	Policy       string        `koanf:"policy" default:"least_loaded" oneof:"round_robin random least_loaded p2c"`
	Queue        string        `koanf:"queue" default:"auto" oneof:"auto off"`
	MaxQueued    int           `koanf:"max_queued" default:"1024" min:"1" max:"1000000"`
	QueueTimeout time.Duration `koanf:"queue_timeout" default:"30s" min:"1ms" max:"24h"`
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
