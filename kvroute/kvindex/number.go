// Numbered: things under small numbers, which take the places of those that were dropped.

package kvindex

// numbered keeps things under the numbers from 1 on.
type numbered[T any] struct {
	chunks [][]T
	last   uint32 // greatest number given
	free   []uint32
}

const (
	chunkLen   = 64
	maxNumbers = 1<<24 - 1
)

// at returns what is kept under a number.
func (d *numbered[T]) at(number uint32) *T { return &d.chunks[number/chunkLen][number%chunkLen] }

// add returns a number, under which nothing is kept yet.
func (d *numbered[T]) add() uint32 {
	if k := len(d.free); k > 0 {
		number := d.free[k-1]
		d.free = d.free[:k-1]
		return number
	}
	d.last++
	if int(d.last/chunkLen) == len(d.chunks) {
		d.chunks = append(d.chunks, make([]T, chunkLen))
	}
	return d.last
}

// drop takes a number back; with the last one, what were many give their memory back.
func (d *numbered[T]) drop(number uint32) {
	if len(d.free)+1 == int(d.last) && len(d.chunks) > 4 {
		*d = numbered[T]{}
		return
	}
	var none T
	*d.at(number) = none
	d.free = append(d.free, number)
}

// each calls f with what is kept under each number, and with what is not.
func (d *numbered[T]) each(f func(uint32, *T)) {
	for i := uint32(1); i <= d.last; i++ {
		f(i, d.at(i))
	}
}

func (d *numbered[T]) bytes(each int) int {
	return len(d.chunks)*(chunkLen*each+24) + 4*cap(d.free)
}
