// The request fields that say where the legs of SGLang's hand-over meet: single values, and lists
// for a batch.

package sim

import (
	"encoding/json"
	"fmt"
	"math"
)

// room is the meeting place of one answer's legs: bootstrap_host, bootstrap_port and
// bootstrap_room.
type room struct {
	host string
	port int
	id   int64
}

// defaultBootstrapPort is what SGLang uses for a null bootstrap_port.
const defaultBootstrapPort = 8998

// readRooms reads the rooms of a request, one for each answer. As in SGLang, a single value
// serves all answers, and room numbers count up from the given one; a list has one value for each
// prompt, used for all choices of that prompt. Without a room the result is nil, and a worker of
// a pair refuses the request.
func readRooms(o Options, f *fields, prompts, choices int) []room {
	raw := f.get("bootstrap_room")
	if raw == nil || f.failure != nil {
		return nil
	}
	hosts := readList[string](f, "bootstrap_host", "string_type", "Input should be a valid string")
	ports := readList[int](f, "bootstrap_port", "int_type", "Input should be a valid integer")
	ids := readList[int64](f, "bootstrap_room", "int_type", "Input should be a valid integer")
	if f.failure != nil {
		return nil
	}
	for name, n := range map[string]int{"bootstrap_host": hosts.wrong(prompts), "bootstrap_port": ports.wrong(prompts),
		"bootstrap_room": ids.wrong(prompts)} {
		if n > 0 {
			f.fail(refuse(fmt.Sprintf("%s has %d items for %d prompts.", name, n, prompts), ""))
		}
	}
	rooms := make([]room, 0, prompts*choices)
	for i := range prompts * choices {
		r := room{host: hosts.at(i/choices, ""), port: ports.at(i/choices, defaultBootstrapPort), id: ids.at(i/choices, 0)}
		if ids.single {
			if r.id > math.MaxInt64-int64(i) {
				f.fail(refuse("bootstrap_room is too large.", ""))
				return nil
			}
			r.id += int64(i)
		}
		if r.id < 0 || r.port < 0 || r.port > 1<<16-1 {
			f.fail(refuse(fmt.Sprintf("bootstrap_room %d at port %d is no room.", r.id, r.port), ""))
			return nil
		}
		rooms = append(rooms, r)
	}
	return rooms
}

// listed is a field that may be one value or a list of values.
type listed[T any] struct {
	values []*T // nil for null
	single bool
}

func readList[T any](f *fields, name, kind, complaint string) (l listed[T]) {
	raw := f.get(name)
	if raw == nil {
		return listed[T]{single: true}
	}
	var one T
	switch {
	case json.Unmarshal(raw, &one) == nil:
		return listed[T]{values: []*T{&one}, single: true}
	case json.Unmarshal(raw, &l.values) != nil:
		f.complain(kind, name, complaint)
	}
	return l
}

// wrong returns the length of a list that does not fit; 0: it fits.
func (l listed[T]) wrong(prompts int) int {
	if l.single || len(l.values) == prompts {
		return 0
	}
	return max(len(l.values), 1)
}

func (l listed[T]) at(i int, standard T) T {
	if l.single {
		i = 0
	}
	if i >= len(l.values) || l.values[i] == nil {
		return standard
	}
	return *l.values[i]
}
