// Following keys in etcd: a list, then its changes, and a list again after each gap.

package discovery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"kvasir/discovery/etcd"
)

// How long it is until an etcd is asked again that could not be: at first, and at most.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 5 * time.Second
)

// A follower follows the keys under some prefixes.
type follower[T any] struct {
	src   *source
	entry Entry // as of now, for whoever reads and tells

	keys     *keyTable[T]
	most     int // keys there may be
	prefixes func(e *Entry) []string
	found    func() report // what the keys say together
}

// run follows until the source is stopped. A watch that breaks is no trouble yet, unless it
// breaks at once: the list that follows shows whether there is any.
func (f *follower[T]) run() {
	ctx := f.src.ctx
	for pause := firstPause; ; {
		f.entry = f.src.now()
		conn, l, err := f.list(ctx)
		if err == nil {
			f.take(l)
			began := time.Now()
			err = f.watch(ctx, conn, l.Revision+1)
			conn.Close()
			if err == nil || time.Since(began) > pause {
				pause, err = firstPause, nil
			}
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil || etcd.IsCompacted(err) { // between two pages of a list
			continue
		}
		f.tellAway(err)
		// Give or take a fifth, so that the replicas of a gateway do not ask together.
		rest := time.NewTimer(time.Duration(float64(pause) * (0.8 + 0.4*rand.Float64())))
		select {
		case <-ctx.Done():
		case <-rest.C:
		case <-f.src.again:
			f.anew()
			f.tellAway(err)
		}
		rest.Stop()
		pause = min(2*pause, lastPause)
	}
}

// tellAway tells what was known before, by the entry as it is now, with why it may be old.
func (f *follower[T]) tellAway(err error) {
	if len(f.keys.known) > f.most {
		f.src.tell(report{err: err})
		return
	}
	r := f.found()
	f.src.tell(r.doubted(err))
}

// anew reads all that is known by the entry as it is now.
func (f *follower[T]) anew() {
	f.entry = f.src.now()
	f.keys.anew()
}

// list lists the keys from one of the servers, to which it stays connected.
func (f *follower[T]) list(ctx context.Context) (conn *etcd.Conn, l etcd.List, err error) {
	conn, err = etcd.Try(ctx, &f.entry.Etcd, func(c *etcd.Conn) (err error) {
		l, err = c.List(ctx, f.prefixes(&f.entry), f.most)
		return err
	})
	return conn, l, err
}

// take makes the keys those of a list.
func (f *follower[T]) take(l etcd.List) {
	there := make(map[string]bool, len(l.Keys))
	for _, kv := range l.Keys {
		there[kv.Key] = true
	}
	f.keys.only(there)
	f.apply(l.Keys)
}

func (f *follower[T]) apply(changes []etcd.KeyValue) {
	for _, kv := range changes {
		switch {
		case kv.Gone:
			f.keys.drop(kv.Key)
		case kv.Large:
			f.keys.spoil(kv.Key, kv.Created, fmt.Errorf("the value has more than %d KiB", etcd.MaxValue>>10))
		default:
			f.keys.put(kv.Key, kv.Value, kv.Created)
		}
	}
}

// watch tells what there is, and takes changes in until it is time to list again. An error
// says that the watch broke.
func (f *follower[T]) watch(ctx context.Context, conn *etcd.Conn, from int64) error {
	ctx, cancel := context.WithCancel(ctx)
	w := conn.Watch(ctx, f.prefixes(&f.entry), from)
	defer func() {
		cancel()
		for range w.C { // until it has ended
		}
	}()
	// An empty list is believed by a look at the end of its grace: by a list, not by silence.
	look := time.NewTimer(time.Hour)
	defer look.Stop()
	for {
		look.Stop()
		began := time.Now()
		if soon := f.src.tell(f.found()); soon > 0 {
			look.Reset(soon)
		}
		rest := time.NewTimer(restAfter(time.Since(began))) // what changes meanwhile is taken together
		select {
		case <-ctx.Done():
		case <-rest.C:
		}
		rest.Stop()
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
			return nil
		case <-f.src.again:
			f.anew()
			return nil
		case changes, ok := <-w.C:
			f.entry = f.src.now()
			for ok && changes != nil {
				f.apply(changes)
				changes, ok = waiting(w.C)
			}
			switch {
			case !ok && etcd.IsCompacted(w.Err()):
				return nil
			case !ok:
				return w.Err()
			case len(f.keys.known) > f.most:
				return fmt.Errorf("it has more than %d keys", f.most)
			}
		}
	}
}

// waiting is what is there already; nil: nothing is. ok says that more may come.
func waiting(c <-chan []etcd.KeyValue) (changes []etcd.KeyValue, ok bool) {
	select {
	case changes, ok = <-c:
		return changes, ok
	default:
		return nil, true
	}
}
