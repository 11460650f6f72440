// Find: how many leading blocks of a prompt each worker has.

package kvindex

import "slices"

// Find appends to dst the overlap of each worker that has the first block of
// the prompt in any tier, or is predicted to; in no order. names are those of
// AppendNames, for workers of that block size: BlockSizes says which there are.
// dst may be used again for the next one; nothing is allocated beside it.
//
// What a worker's events change meanwhile is seen or not; a worker that nothing
// changes for is always seen as it is.
//
// It goes from run to run of the tree, and looks at the names of one by halves.
func (x *Index) Find(dst []Overlap, names []Name) []Overlap {
	if len(names) == 0 {
		return dst
	}
	f, _ := x.finders.Get().(*finder)
	if f == nil {
		f = new(finder)
	}
	f.begin(int(x.ids.Load()), names, dst)
	f.walk(&x.held, false)
	f.walk(&x.predicted, true)
	dst = f.dst
	f.names, f.dst = nil, nil
	x.finders.Put(f)
	return dst
}

// A finder is one Find under way.
type finder struct {
	names []Name
	dst   []Overlap
	from  int // where this Find's overlaps begin in dst

	// By worker: which Find it was that saw it last, and (lower 16 bits) where in
	// dst it is, from f.from on.
	seen  []uint32
	round uint32
}

func (f *finder) begin(ids int, names []Name, dst []Overlap) {
	f.names, f.dst, f.from = names, dst, len(dst)
	if len(f.seen) < ids {
		f.seen, f.round = make([]uint32, ids+ids/4), 0
	}
	if f.round += 1 << 16; f.round == 0 { // all were used
		clear(f.seen)
		f.round = 1 << 16
	}
}

// walk goes from run to run as long as the prompt goes with them and a worker has all of them.
func (f *finder) walk(t *tree, predicted bool) {
	if !t.table.any.Load() {
		return
	}
	for depth := 0; depth < len(f.names); {
		v := t.at(f.names[depth], depth)
		if v == nil {
			return
		}
		run := v.names[:v.len()]
		end := int(v.depth) + len(run)
		same := depth + common(run[depth-int(v.depth):], f.names[depth:])
		var more bool
		switch {
		case predicted:
			more = f.meetPredicted(v, int32(depth), int32(same))
		case depth == 0:
			more = f.meetFirst(v, int32(same))
		default:
			more = f.meet(v, int32(depth), int32(same))
		}
		if !more || same < end {
			return
		}
		depth = same
	}
}

// meetFirst notes who has blocks of the first run, of which the prompt has same
// ones, and says whether a worker has all of those. Where a thousand workers
// share it, to write this down is most of the work.
func (f *finder) meetFirst(v *view, same int32) (more bool) {
	words, seen := v.words, f.seen
	f.dst = slices.Grow(f.dst, len(words))
	dst := f.dst[len(f.dst) : len(f.dst)+len(words)]
	round, n := f.round, 0
	whole := word(0, [tiers]uint16{uint16(v.len()), uint16(v.len()), uint16(v.len())}) << 16
	for i := range words {
		word := words[i].Load()
		id := int(word>>48) - 1
		if uint(id) >= uint(len(seen)) || word<<16 == 0 || seen[id] >= round {
			continue
		}
		seen[id] = round | uint32(n)
		o := &dst[n]
		n++
		if word<<16 == whole { // most have all of it, on the device
			*o = Overlap{Worker: int32(id), Device: same}
			more = true
			continue
		}
		device, host, disk := ends(word, 0, same)
		*o = Overlap{Worker: int32(id), Device: device, Host: host - device, Disk: disk - host}
		more = more || disk == same
	}
	f.dst = f.dst[:len(f.dst)+n]
	return more
}

// ends returns where the blocks of a level and of faster ones end by a word of
// a run, in blocks from the beginning of the prompt, which goes with the run up
// to same.
func ends(word uint64, depth, same int32) (device, host, disk int32) {
	return min(depth+int32(word&0xffff), same), min(depth+int32(word>>16&0xffff), same), min(depth+int32(word>>32&0xffff), same)
}

// meet is meetFirst for the runs behind it: the prompt goes with this one from
// block depth on, up to same.
func (f *finder) meet(v *view, depth, same int32) (more bool) {
	for i := range v.words {
		o, word := f.of(v, i)
		if o == nil {
			continue
		}
		device, host, disk := ends(word, v.depth, same)
		toHost, toDisk := o.Device+o.Host, o.Blocks()
		if toDisk != depth {
			continue
		}
		toDisk = max(depth, disk)
		if toHost == depth {
			toHost = max(depth, host)
		}
		if o.Device == depth {
			o.Device = max(depth, device)
		}
		o.Host, o.Disk = toHost-o.Device, toDisk-toHost
		more = more || toDisk == same
	}
	return more
}

// of returns the overlap of the worker at a place of the view, nil if it was
// not seen yet, and its word.
func (f *finder) of(v *view, place int) (*Overlap, uint64) {
	word := v.words[place].Load()
	id := int(word>>48) - 1
	if uint(id) >= uint(len(f.seen)) || f.seen[id] < f.round {
		return nil, word
	}
	return &f.dst[f.from+int(f.seen[id]&0xffff)], word
}

// meetPredicted is meet for what is predicted.
func (f *finder) meetPredicted(v *view, depth, same int32) (more bool) {
	for i := range v.words {
		o, word := f.of(v, i)
		end, _, _ := ends(word, v.depth, same)
		if end <= depth {
			continue
		}
		if o == nil {
			id := int(word>>48) - 1
			if depth > 0 || id >= len(f.seen) {
				continue
			}
			f.seen[id] = f.round | uint32(len(f.dst)-f.from)
			f.dst = append(f.dst, Overlap{Worker: int32(id)})
			o = &f.dst[len(f.dst)-1]
		}
		if o.Predicted == depth {
			o.Predicted = end
			more = more || end == same
		}
	}
	return more
}
