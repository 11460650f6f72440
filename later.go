// Later: keys of the design whose rooms are not built yet, accepted only where they switch themselves off.
package main

// A laterKey is a key that means something only once its room is built. Until
// then one that cannot have an effect is an error, not a silent nothing.
type laterKey struct {
	path string
	off  string // the one value that is accepted, as written in YAML; "": none is, because no value switches it off
}

// notBuiltIn has one row for each such key; the issue that builds a room moves
// its rows into Config.
var notBuiltIn = []laterKey{
	{"keys[].isolate", "false"},
	{"workers[].kv_events", `""`},
	{"workers[].kv_replay", `""`},
	{"workers[].gpus", "[]"},
	{"models[].tokenizer", "none"},
	{"routing.prefill_load_scale", ""},
	{"routing.overlap_credit.device", ""},
	{"routing.overlap_credit.host", ""},
	{"routing.overlap_credit.disk", ""},
	{"routing.temperature", "0"},
	{"routing.disaggregate", "never"},
	{"classify.models", `""`},
	{"gpu.mode", "off"},
	{"gpu.interval", ""},
}

// laterValues are values of built keys that belong to a later room.
var laterValues = map[string][]string{
	"routing.policy": {"predict", "kv"},
}
