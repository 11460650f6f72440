// Dialects: what differs from engine to engine, one row and one file each.

package upstream

import (
	"context"
	"strconv"
	"strings"

	"kvasir/kvroute/holdings"
)

// A dialect is one engine: how it is recognised, and what can be had of it. What is
// nil or zero is what any OpenAI server does. To add an engine is to add its file
// with its row, and to name the row in dialects: the configuration takes its name from
// there (workers[].engine).
type dialect struct {
	name string // as in workers[].engine

	// also is what people call it as well, as wording.Plain writes it: the configuration
	// asks whether the name was meant.
	also []string

	// owner is what the owner holds, in lower case, that the engine gives its models in
	// /v1/models; "": it is not recognised by that.
	owner string

	// salts says that the engine keeps KV blocks of different cache_salts apart. Others
	// ignore the field, or refuse the request for it.
	salts bool

	// prompts says that the engine makes the same prompt of a request as vLLM, and has
	// vLLM's routes to ask for its tokens. Of others only plain text is sure.
	prompts bool

	// needsPrefill says that its decode workers compute no prompts: they refuse a request
	// that no prefill worker has begun.
	needsPrefill bool

	// meet asks what else must be known of a worker before it is sent requests; nil:
	// nothing.
	meet func(context.Context, *Worker) error

	// facts asks what the engine is, and what it counts; nil: it does not say.
	facts func(context.Context, *Worker) (facts, error)

	// sources finds out where the engine's ranks publish their KV events, by asking or
	// by the facts that it gave; nil: it does not say. None and no error: nowhere.
	sources func(context.Context, *Worker, *facts) ([]holdings.Source, error)

	// directions appends the header lines that lead a request to a data-parallel rank,
	// -1: none, of the worker; nil: vLLM's.
	directions func(dst []byte, w *Worker, rank int) []byte

	// connectors are the ways in which its workers hand requests over to each other,
	// the default first; none: each worker computes the prompts that it answers.
	connectors []*Connector
}

// dialects are all engines.
var dialects = [...]*dialect{&vllm, &sglang, &trtllm, &dynamo, &llamaCPP, &openAI}

// EngineNames are the names of all engines, as in workers[].engine.
func EngineNames() []string {
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = d.name
	}
	return names
}

// OtherEngineNames are the names of engines by what else they are called.
func OtherEngineNames() map[string]string {
	names := map[string]string{}
	for _, d := range dialects {
		for _, other := range d.also {
			names[other] = d.name
		}
	}
	return names
}

// dialectOf is the row of an engine's name; of an unknown name one without anything.
func dialectOf(name string) *dialect {
	for _, d := range dialects {
		if d.name == name {
			return d
		}
	}
	return &dialect{name: name}
}

// recognise is the engine whose models have such an owner.
func recognise(owner string) *dialect {
	owner = strings.ToLower(owner)
	for _, d := range dialects {
		if d.owner != "" && strings.Contains(owner, d.owner) {
			return d
		}
	}
	return &openAI
}

// unknown is a worker's dialect while nobody has said what it is.
var unknown dialect

// dialect is how to speak to the worker, by the configuration or by what it says.
func (w *Worker) dialect() *dialect {
	if w.named != nil {
		return w.named
	}
	if f := w.found.Load(); f != nil {
		return f.dialect
	}
	return &unknown
}

// EngineName is the worker's engine, as the configuration or the worker itself says;
// "": nobody has said yet.
func (w *Worker) EngineName() string { return w.dialect().name }

// TakesSalt says whether the engine keeps KV blocks of different cache_salts apart.
// Others ignore the field, or refuse the request for it.
func (w *Worker) TakesSalt() bool { return w.dialect().salts }

// OtherPrompts is the worker's engine where that may make another prompt of a request
// than vLLM; "": it does not, or is not known yet.
func (w *Worker) OtherPrompts() string {
	if d := w.dialect(); !d.prompts {
		return d.name
	}
	return ""
}

// AppendDirections appends the header lines that lead a request to the worker's
// data-parallel rank, -1: none, and to the worker itself where others answer at the
// same address.
func (w *Worker) AppendDirections(dst []byte, rank int) []byte {
	if d := w.dialect(); d.directions != nil {
		return d.directions(dst, w, rank)
	}
	return appendRank(dst, "X-data-parallel-rank", rank)
}

// appendRank appends a header line with a rank, if there is one.
func appendRank(dst []byte, name string, rank int) []byte {
	if rank < 0 {
		return dst
	}
	dst = append(append(dst, name...), ": "...)
	return append(strconv.AppendInt(dst, int64(rank), 10), "\r\n"...)
}

// appendLine appends a header line.
func appendLine(dst []byte, name, value string) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, value...), "\r\n"...)
}
