// Get: one entry by its ID.

package embedded

import "kvasir/cache"

var _ cache.Getter = (*Store)(nil)

// Get returns the entry with this ID; nil: none. It serves people, not requests: unlike lookups
// it waits for writers.
func (s *Store) Get(id cache.ID) (*cache.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return nil, cache.ErrUnavailable
	}
	if it := s.ids[id]; it != nil && it.deadline > s.clock.now() {
		return it.entry, nil
	}
	return nil, nil
}
