// The decoder: one message's payload into events.

package kvevents

import (
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

// Decoder reads payloads of one engine's messages. It remembers which of the engine's groups of layers count
// (extra.go), so that each source needs its own. The zero value is ready; it is not safe for concurrent use.
type Decoder struct {
	Counts Counts

	event  event
	groups groups
}

// Counts are what a decoder has seen since it was made.
type Counts struct {
	Stored, Removed, Cleared uint64 // events given to the sink
	BlocksStored             uint64 // handles in them
	BlocksRemoved            uint64

	Malformed   uint64 // events and messages that cannot be read
	UnknownKind uint64 // events of kinds that this package does not know
	UnknownTier uint64 // events about media that it does not know, left out
	OtherGroup  uint64 // events about layers that say nothing about prefixes, left out
	ExtraFields uint64 // fields of known events that it does not know, ignored
}

// Batch is what a payload says about itself.
type Batch struct {
	Time   float64 // when the engine made it, in seconds since 1970; 0 if it does not say
	Rank   int     // data-parallel rank, or Unknown
	Events int     // given to the sink
}

// event is the fields of an event of any kind, with slices that every event uses again.
type event struct {
	kind    []byte
	stored  Stored
	removed Removed
	medium  []byte
	layers  []byte // kv_cache_spec_kind
	extra   []byte // extra_keys, still packed: what they mean hangs on fields that may come later
	has     fieldSet
}

// Decode gives the events of one payload to sink, in order. The payload is only read, and needed no longer when it
// returns.
//
// Unknown kinds of events and unknown fields are passed over. A BlockStored that cannot be read is left out: nothing
// wrong is known then. A BlockRemoved that cannot be read, or a payload that ends before its events do, leaves the
// sink not knowing what is gone: it hears Cleared with the reason Damaged. Both come back as an error as well.
func (d *Decoder) Decode(payload []byte, sink Sink) (Batch, error) {
	batch, err := d.decode(payload, sink)
	if whole, ok := sink.(BatchSink); ok {
		whole.BatchEnd()
	}
	return batch, err
}

func (d *Decoder) decode(payload []byte, sink Sink) (Batch, error) {
	p := packed{b: payload}
	batch := Batch{Rank: Unknown}
	fields := p.array()
	if p.err == nil && fields < 2 {
		p.fail(fmt.Errorf("a batch of %d fields", fields))
	}
	batch.Time = p.seconds()
	list := p // the rank stands behind the events, and each of them needs it
	p.skip()
	if fields > 2 {
		batch.Rank = p.optionalInt()
	}
	for i := 3; i < fields; i++ {
		p.skip()
	}
	if p.err == nil && len(p.b) > 0 {
		p.fail(errLeftover)
	}
	if p.err != nil {
		return batch, d.damaged(sink, batch, p.err)
	}
	count := list.array()
	if list.err != nil {
		return batch, d.damaged(sink, batch, list.err)
	}
	var problem error
	for range count {
		if err := d.decodeEvent(&list, &batch, sink); err != nil && problem == nil {
			problem = err
		}
	}
	return batch, problem
}

// damaged tells the sink that events are lost.
func (d *Decoder) damaged(sink Sink, batch Batch, err error) error {
	d.Counts.Malformed++
	sink.Cleared(Cleared{batch.Rank, Damaged})
	return fmt.Errorf("cannot read a message of KV events: %w", err)
}

// decodeEvent reads the event that list begins with, and moves list behind it whatever is in it: that the bytes are
// whole values is known by now.
func (d *Decoder) decodeEvent(list *packed, batch *Batch, sink Sink) error {
	p := *list
	d.event.reset(batch.Rank)
	d.readEvent(&p)
	if p.err != nil {
		list.skip()
	} else {
		list.b = p.b
	}
	return d.deliver(p.err, batch, sink)
}

// readEvent reads the fields of an event in either form.
func (d *Decoder) readEvent(p *packed) {
	switch p.kind() {
	case msgp.ArrayType:
		d.decodeArray(p)
	case msgp.MapType:
		d.decodeMap(p)
	default:
		p.skip()
	}
}

// deliver gives what was read to the sink; err is why it could not be read.
func (d *Decoder) deliver(err error, batch *Batch, sink Sink) error {
	switch string(d.event.kind) {
	case "BlockStored":
		return d.store(err, batch, sink)
	case "BlockRemoved":
		return d.remove(err, batch, sink)
	case "AllBlocksCleared":
		d.Counts.Cleared++
		batch.Events++
		sink.Cleared(Cleared{batch.Rank, ByEngine})
		return nil
	}
	d.Counts.UnknownKind++
	return nil
}

// store gives a BlockStored to the sink.
func (d *Decoder) store(err error, batch *Batch, sink Sink) error {
	e := &d.event
	s := &e.stored
	if !d.groups.main(s.Group, e.layers) {
		d.Counts.OtherGroup++
		return nil
	}
	if err == nil {
		err = e.check()
	}
	if err != nil {
		d.Counts.Malformed++
		return fmt.Errorf("cannot read a BlockStored: %w", err)
	}
	tier, ok := tierOf(e.medium)
	if !ok {
		d.Counts.UnknownTier++
		return nil
	}
	if len(s.Handles) == 0 {
		return nil
	}
	s.Tier = tier
	d.Counts.Stored++
	d.Counts.BlocksStored += uint64(len(s.Handles))
	batch.Events++
	sink.Stored(s)
	return nil
}

// remove gives a BlockRemoved to the sink.
func (d *Decoder) remove(err error, batch *Batch, sink Sink) error {
	e := &d.event
	if !d.groups.main(e.stored.Group, e.layers) {
		d.Counts.OtherGroup++
		return nil
	}
	if err == nil && !e.has.all(handlesField) {
		err = errMissing
	}
	if err != nil {
		return d.damaged(sink, *batch, fmt.Errorf("its BlockRemoved: %w", err))
	}
	tier, ok := tierOf(e.medium)
	if !ok {
		d.Counts.UnknownTier++
		return nil
	}
	if len(e.stored.Handles) == 0 {
		return nil
	}
	e.removed = Removed{batch.Rank, tier, e.stored.Handles, e.stored.Group}
	d.Counts.Removed++
	d.Counts.BlocksRemoved += uint64(len(e.removed.Handles))
	batch.Events++
	sink.Removed(&e.removed)
	return nil
}

// keep is the most items of a slice that the next event uses again.
const keep = 1 << 18

// reset makes e ready for an event; the slices keep their memory unless it was a giant.
func (e *event) reset(rank int) {
	s := &e.stored
	*e = event{stored: Stored{Rank: rank, Handles: emptied(s.Handles), Tokens: emptied(s.Tokens),
		Extra: emptied(s.Extra), LoRAID: Unknown, Group: Unknown}}
}

func emptied[T any](s []T) []T {
	if cap(s) > keep {
		return nil
	}
	return s[:0]
}
