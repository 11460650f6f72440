// Series: what was counted of requests over the last minutes, as samples of five seconds.

package page

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"kvasir/proxy/record"
)

// The series has the last 15 minutes.
const (
	step        = 5 * time.Second
	mostSamples = 180
	lastMinute  = 13 // readings that span a minute
)

// What is counted of each request that has ended.
const (
	allRequests = iota
	failedRequests
	blockedRequests
	cacheHits
	tokensIn
	tokensOut
	tokensCached
	numCounts
)

// The times that are kept, each of other requests: what a worker generates and what comes from the
// cache differ by a factor of thousands, and would hide each other.
const (
	firstBytes = iota
	betweenTokens
	wholeAnswers
	hitTimes
	numTimes
)

// A Sample is what went on over some seconds. All but the gauges is a second's worth.
type Sample struct {
	Time         int64   `json:"t"` // when they ended, seconds since 1970
	Requests     float64 `json:"requests"`
	Errors       float64 `json:"errors"`
	Blocked      float64 `json:"blocked"`
	CacheHits    float64 `json:"cache_hits"`
	TokensIn     float64 `json:"tokens_in"`
	TokensOut    float64 `json:"tokens_out"`
	TokensCached float64 `json:"tokens_cached"`

	Queue    int `json:"queue"`     // requests that wait for a worker, at the end
	InFlight int `json:"in_flight"` // requests under way, those that wait among them

	FirstByte *Quantiles `json:"ttfb_ms"`  // of streams of workers; null: none began
	Between   *Quantiles `json:"itl_ms"`   // between tokens of these
	Whole     *Quantiles `json:"whole_ms"` // workers' answers that were not streamed, to their end
	Hits      *Quantiles `json:"hit_ms"`   // answers from the cache, and equal requests' ones
}

// A series counts requests and keeps samples of them. Requests are counted in stripes, one of them
// drawn for each request, so that cores do not wait for each other's cache lines. Counters only
// grow; what happened in between is the difference of two readings.
type series struct {
	stripes [8]stripe

	mu       sync.Mutex // guards all below
	samples  []Sample   // the oldest first
	readings [lastMinute]reading
	read     int // so many were taken
}

type stripe struct {
	counts [numCounts]atomic.Uint64
	times  [numTimes]histogram
	_      [64]byte
}

// A reading is the sum of the stripes at a time.
type reading struct {
	at     time.Time
	counts [numCounts]uint64
	times  [numTimes][buckets]uint32
}

// start begins the series.
func (s *series) start(now time.Time) { s.extendWith(now, nil) }

// note counts a request.
func (s *series) note(r *record.Record) {
	t := &s.stripes[rand.Uint32()%uint32(len(s.stripes))]
	t.counts[allRequests].Add(1)
	switch r.Outcome() {
	case record.Error:
		t.counts[failedRequests].Add(1)
	case record.Blocked:
		t.counts[blockedRequests].Add(1)
	case record.FromCache:
		t.counts[cacheHits].Add(1)
	}
	t.add(tokensIn, r.Prompt)
	t.add(tokensOut, r.Completion)
	t.add(tokensCached, r.CachedTokens)
	if r.FirstByte > 0 {
		t.noteTimes(r)
	}
}

func (t *stripe) noteTimes(r *record.Record) {
	switch {
	case r.Outcome() == record.FromCache:
		t.times[hitTimes].note(r.FirstByte)
	case r.Path != "upstream" || r.Status >= 400:
		// A refusal, a block, or an error: none of them is an answer.
	case !r.Streamed:
		t.times[wholeAnswers].note(r.Total)
	default:
		t.times[firstBytes].note(r.FirstByte)
		if r.Completion > 1 {
			t.times[betweenTokens].note((r.Total - r.FirstByte) / time.Duration(r.Completion-1))
		}
	}
}

func (t *stripe) add(what, n int) {
	if n > 0 {
		t.counts[what].Add(uint64(n))
	}
}

// sum reads all stripes.
func (s *series) sum(into *reading, now time.Time) {
	*into = reading{at: now}
	for i := range s.stripes {
		t := &s.stripes[i]
		for k := range t.counts {
			into.counts[k] += t.counts[k].Load()
		}
		for k := range t.times {
			for at := range t.times[k] {
				into.times[k][at] += t.times[k][at].Load()
			}
		}
	}
}

// extend adds the sample that ends now.
func (s *series) extend(now time.Time, inFlight, queued int) {
	s.extendWith(now, func(sample *Sample) { sample.InFlight, sample.Queue = inFlight, queued })
}

// extendWith adds a reading and, but for the first one, a sample that gauges fills in.
func (s *series) extendWith(now time.Time, gauges func(*Sample)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.latest()
	next := &s.readings[s.read%lastMinute]
	s.sum(next, now)
	if s.read++; last == nil {
		return
	}
	sample := between(last, next)
	gauges(&sample)
	if len(s.samples) == mostSamples {
		copy(s.samples, s.samples[1:])
		s.samples = s.samples[:mostSamples-1]
	}
	s.samples = append(s.samples, sample)
}

// latest is the last reading; nil before the first.
func (s *series) latest() *reading {
	if s.read == 0 {
		return nil
	}
	return &s.readings[(s.read-1)%lastMinute]
}

// all copies the samples.
func (s *series) all() []Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(make([]Sample, 0, len(s.samples)), s.samples...)
}

// minute is a sample of the last minute, or of the time since the start.
func (s *series) minute(now time.Time) Sample {
	var last reading
	s.sum(&last, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	return between(&s.readings[max(s.read-lastMinute, 0)%lastMinute], &last)
}

// before copies the last reading but one: 5 to 10 seconds old.
func (s *series) before() reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readings[max(s.read-2, 0)%lastMinute]
}

// between is what happened between two readings.
func between(from, to *reading) Sample {
	seconds := max(to.at.Sub(from.at).Seconds(), 0.001)
	rate := func(what int) float64 { return rounded(float64(to.counts[what]-from.counts[what]) / seconds) }
	times := func(what int) *Quantiles { return quantilesOf(&from.times[what], &to.times[what]) }
	return Sample{
		Time: to.at.Unix(), Requests: rate(allRequests), Errors: rate(failedRequests), Blocked: rate(blockedRequests), CacheHits: rate(cacheHits),
		TokensIn: rate(tokensIn), TokensOut: rate(tokensOut), TokensCached: rate(tokensCached),
		FirstByte: times(firstBytes), Between: times(betweenTokens), Whole: times(wholeAnswers), Hits: times(hitTimes),
	}
}

// rounded has three decimals: more would only make the JSON longer. It makes -0 a 0.
func rounded(x float64) float64 { return math.Round(x*1000)/1000 + 0 }
