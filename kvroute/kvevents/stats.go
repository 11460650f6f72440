// What a subscriber counts.

package kvevents

import "time"

// Stats are a subscriber's counters since it was made, and its state.
type Stats struct {
	Counts

	Messages    uint64 // taken, replayed ones included
	Replayed    uint64 // taken from the replay socket
	Doubles     uint64 // came live after a replay had given them
	Gaps        uint64 // times that messages were missing
	Lost        uint64 // messages that could not be had again
	Restarts    uint64 // times that the engine was found started anew
	Clears      uint64 // times that the sink was told to forget everything: gaps, restarts, connections lost
	Connections uint64 // made to the event socket
	Failures    uint64 // connections, to either socket, that failed or ended

	Connected bool
	Next      uint64        // sequence number of the message expected next
	Lag       time.Duration // from when the engine made the last live message to when its events were given on; clocks of two hosts
	LastAt    time.Time     // when the last live message came
}

// Add adds the counters of another subscriber; the state stays.
func (st *Stats) Add(o Stats) {
	for _, c := range [...]struct{ to, from *uint64 }{
		{&st.Stored, &o.Stored}, {&st.Removed, &o.Removed}, {&st.Cleared, &o.Cleared},
		{&st.BlocksStored, &o.BlocksStored}, {&st.BlocksRemoved, &o.BlocksRemoved},
		{&st.Malformed, &o.Malformed}, {&st.UnknownKind, &o.UnknownKind}, {&st.UnknownTier, &o.UnknownTier},
		{&st.OtherGroup, &o.OtherGroup}, {&st.ExtraFields, &o.ExtraFields},
		{&st.Messages, &o.Messages}, {&st.Replayed, &o.Replayed}, {&st.Doubles, &o.Doubles}, {&st.Gaps, &o.Gaps},
		{&st.Lost, &o.Lost}, {&st.Restarts, &o.Restarts}, {&st.Clears, &o.Clears},
		{&st.Connections, &o.Connections}, {&st.Failures, &o.Failures},
	} {
		*c.to += *c.from
	}
}

// Stats returns the counters. It may be called at any time, from any goroutine.
func (s *Subscriber) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// count changes the counters.
func (s *Subscriber) count(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
	s.stats.Counts = s.decoder.Counts
	s.stats.Next = s.order.next
}
