// Mail: what several routers before the same engines say to each other, and how long that is on its way.

package replay

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"kvasir/kvroute"
	"kvasir/kvroute/peering"
)

// mail is what is on its way between routers.
type mail struct {
	letters  []letter // in the order in which they arrive: all take the same time
	ticks    time.Duration
	random   *rand.Rand // draws the router that a request comes to
	messages int        // that were sent, whoever got them
	bytes    int
}

// A letter is one message to all routers but its sender.
type letter struct {
	at   time.Duration // when it arrives
	from int
	text []byte
}

// newExchange is how a router hears of the others. What it has to say waits for peering.Gather, as in package peers.
func newExchange(f *fleet, p *placing, number int) *peering.Exchange {
	return peering.New(peering.Options{
		ID: uint64(number) + 1, Name: strconv.Itoa(number),
		Ready: func() { p.flushes = f.now + peering.Gather },
	})
}

// keyed are the workers as they are called between routers.
func (p *placing) keyed() map[uint64]*kvroute.Worker {
	workers := make(map[uint64]*kvroute.Worker, len(p.workers))
	for _, w := range p.workers {
		workers[peering.Key(w.Name())] = w
	}
	return workers
}

// router is the one that the next request comes to.
func (f *fleet) router() *placing {
	if len(f.routers) == 1 {
		return f.placing
	}
	return f.routers[f.mail.random.IntN(len(f.routers))]
}

func (f *fleet) beginMail() {
	f.mail = mail{ticks: never, random: rand.New(rand.NewPCG(f.options.Seed, 0x7065657273))} //nolint:gosec // the same seed, the same replay
	if f.placing.exchange != nil {
		f.mail.ticks = 0
	}
}

// next is when a letter arrives next, or one is written for sure.
func (m *mail) next() time.Duration {
	if len(m.letters) > 0 {
		return min(m.ticks, m.letters[0].at)
	}
	return m.ticks
}

// deliver hands over the letters that are there by now.
func (f *fleet) deliver() error {
	m := &f.mail
	n := 0
	for ; n < len(m.letters) && m.letters[n].at <= f.now; n++ {
		for to, p := range f.routers {
			if to == m.letters[n].from {
				continue
			}
			if err := p.exchange.Take(f.time(), m.letters[n].text); err != nil {
				return fmt.Errorf("BUG: router %d does not understand router %d: %w", to, m.letters[n].from, err)
			}
		}
	}
	m.letters = m.letters[n:]
	return nil
}

// collect takes the messages that are due now on their way.
func (f *fleet) collect() {
	m := &f.mail
	ticks := m.ticks <= f.now
	for from, p := range f.routers {
		switch {
		case ticks:
			f.post(from, p.exchange.Tick(f.time()))
		case p.flushes <= f.now:
			f.post(from, p.exchange.Flush(f.time()))
		default:
			continue
		}
		p.flushes = never
	}
	if ticks {
		m.ticks = f.now + peering.Heartbeat
	}
}

func (f *fleet) post(from int, messages [][]byte) {
	for _, text := range messages {
		f.mail.messages++
		f.mail.bytes += len(text)
		f.mail.letters = append(f.mail.letters, letter{f.now + f.options.Sync, from, bytes.Clone(text)})
	}
}
