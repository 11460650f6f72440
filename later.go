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
	{"classify.models", `""`},
}
