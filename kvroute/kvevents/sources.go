// Where an engine publishes: its ranks, and what vLLM says about itself.

package kvevents

import (
	"encoding/json"
	"fmt"
	"net"
	"sort"
	"strconv"
	"strings"
)

// Rank is the source of a data-parallel rank of the engine whose rank 0 is s: engines add the rank to the ports.
func (s Source) Rank(rank int) (Source, error) {
	var err error
	if s.Events, err = shift(s.Events, rank); err != nil {
		return Source{}, err
	}
	if s.Replay != "" {
		s.Replay, err = shift(s.Replay, rank)
	}
	return s, err
}

func shift(address string, by int) (string, error) {
	at := strings.LastIndexByte(address, ':')
	port, err := strconv.Atoi(address[at+1:])
	if !strings.HasPrefix(address, "tcp://") || err != nil || port+by < 1 || port+by > 65535 {
		return "", fmt.Errorf("cannot find the port of rank %d of %q", by, address)
	}
	return address[:at+1] + strconv.Itoa(port+by), nil
}

// ReadSources reads the answer of vLLM's GET /kv_event_sources: by data-parallel rank, in order, where events are
// published. An engine says the addresses that it listens at, tcp://*:5557; host is put in place of the star. Ranks
// whose events are switched off, or go where nobody can subscribe, are left out.
func ReadSources(body []byte, host string) (ranks []int, sources []Source, err error) {
	var said map[string]struct {
		Enabled   *bool  `json:"enable_kv_cache_events"`
		Publisher string `json:"publisher"`
		Events    string `json:"endpoint"`
		Replay    string `json:"replay_endpoint"`
		Topic     string `json:"topic"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, nil, fmt.Errorf("cannot read where KV events come from: %w", err)
	}
	found := make(map[int]Source, len(said))
	for key, one := range said {
		rank, err := strconv.Atoi(key)
		if err != nil || rank < 0 || strconv.Itoa(rank) != key { // "00" would be rank 0 a second time
			return nil, nil, fmt.Errorf("cannot read where KV events come from: %q is no rank", key)
		}
		if one.Enabled != nil && !*one.Enabled || one.Publisher != "zmq" && one.Publisher != "" {
			continue
		}
		events, ok := reachable(one.Events, host)
		if !ok {
			continue
		}
		replay, _ := reachable(one.Replay, host)
		found[rank] = Source{events, replay, one.Topic}
		ranks = append(ranks, rank)
	}
	sort.Ints(ranks)
	for _, rank := range ranks {
		sources = append(sources, found[rank])
	}
	return ranks, sources, nil
}

// reachable turns an address to listen at into one to connect to.
func reachable(address, host string) (string, bool) {
	rest, ok := strings.CutPrefix(address, "tcp://")
	if !ok {
		return "", false
	}
	at := strings.LastIndexByte(rest, ':')
	if at < 0 {
		return "", false
	}
	switch listens := strings.Trim(rest[:at], "[]"); listens {
	case "*", "", "0.0.0.0", "::":
	default:
		host = listens
	}
	return "tcp://" + net.JoinHostPort(host, rest[at+1:]), true
}
