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
