// Counted: what the proxy counts by model only while names of other systems are asked for. These
// metrics are not shown by names of their own.

package compatible

// Names of what is counted, and their labels.
const (
	// Requests, and the seconds from each to the end of its answer: by model, route, stream
	// ("true": the answer is a stream), worker ("true": one was asked), end ("": it went well, else
	// as in kvasir_requests_ended_total, but blocked_jailbreak, blocked_pii and blocked_decision)
	// and code, its HTTP status.
	Requests = "requests"
	Seconds  = "seconds"

	// Of streams of workers, by model and route: from the request to the first byte, and from one
	// event to the next, from the first with content on.
	FirstSeconds = "first_seconds"
	ChunkSeconds = "chunk_seconds"

	// Of each request that a worker counted tokens for: by model, route and type (prompt,
	// completion, cached); and the seconds of the whole by each token of the answer, by model.
	Tokens       = "tokens"
	TokenSeconds = "token_seconds"

	// Requests that were judged, by source (the model that was asked for), model and reason, as in
	// the log's reason_code; the categories found; personal data that was not to be there, by model
	// and type; and how a decision set the reasoning, by category, model and effort.
	Routed       = "routed"
	Categories   = "categories"
	PersonalData = "personal_data"
	Reasoning    = "reasoning"

	// Share of the blocks of a prompt that its worker was taken to hold; that share over the last
	// minutes; and the seconds of prefill workers, by worker.
	ReusedShare    = "reused_share"
	ReusedLately   = "reused_lately"
	PrefillSeconds = "prefill_seconds"

	// What is known of engines, by model: blocks, seqs, batch, context and block; and the share of a
	// worker's blocks that is held, by worker.
	EngineBlocks  = "engine_blocks"
	EngineSeqs    = "engine_seqs"
	EngineBatch   = "engine_batch"
	EngineContext = "engine_context"
	EngineBlock   = "engine_block"
	HeldShare     = "held_share"

	// Entries of the cache, by backend: memory or milvus.
	CacheEntries = "cache_entries"
)
