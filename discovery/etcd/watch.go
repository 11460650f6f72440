// Keys under prefixes: all of one revision, and then each change of them.

package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"
)

// Bounds of what is read. A value that is larger is not taken into memory for long, and is
// told as such.
const (
	page     = 32       // keys of one answer
	MaxValue = 64 << 10 // bytes of one value
	maxTotal = 64 << 20 // bytes of all values of a list
)

// A KeyValue is a key as it is now. Nobody writes to Value any more.
type KeyValue struct {
	Key   string
	Value []byte
	Large bool // the value is larger than MaxValue, and left out
	Gone  bool // there is no such key any more; in changes alone

	Created int64 // the revision in which the key came
}

func keyValue(kv *mvccpb.KeyValue) KeyValue {
	if len(kv.Value) > MaxValue {
		return KeyValue{Key: string(kv.Key), Large: true, Created: kv.CreateRevision}
	}
	return KeyValue{Key: string(kv.Key), Value: kv.Value, Created: kv.CreateRevision}
}

// A List is all keys under the prefixes, as of one revision.
type List struct {
	Keys     []KeyValue
	Revision int64
}

// List reads all keys under the prefixes, by pages, and refuses to where there are more
// than most.
func (c *Conn) List(ctx context.Context, prefixes []string, most int) (l List, err error) {
	total := 0
	for _, prefix := range prefixes {
		end := []byte(after(prefix))
		for from := []byte(prefix); ; {
			got, err := c.get(ctx, &pb.RangeRequest{Key: from, RangeEnd: end, Limit: page, Revision: l.Revision})
			if err != nil {
				return List{}, fmt.Errorf("cannot list %s: %w", prefix, plain(err))
			}
			if n := len(l.Keys) + int(got.Count); n > most {
				return List{}, fmt.Errorf("cannot list %s: it has %d keys, more than %d", prefix, n, most)
			}
			if l.Revision == 0 {
				l.Revision = got.Header.GetRevision()
			}
			for _, kv := range got.Kvs {
				l.Keys = append(l.Keys, keyValue(kv))
				total += len(l.Keys[len(l.Keys)-1].Value)
				from = append(kv.Key, 0)
			}
			if total > maxTotal {
				return List{}, fmt.Errorf("cannot list %s: its values have more than %d MiB", prefix, maxTotal>>20)
			}
			if !got.More || len(got.Kvs) == 0 {
				break
			}
		}
	}
	return l, nil
}

func (c *Conn) get(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	ctx, cancel := context.WithTimeout(withLeader(ctx), patience)
	defer cancel()
	return c.kv.Range(ctx, r)
}

// after is the first key behind all that begin with the prefix.
func after(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return "\x00" // of a prefix that nothing lies behind: to the end of all keys
}

// A Watch tells of changes. C is closed when it ends, which it does when its context ends
// or when it may have missed something; then Err says why.
type Watch struct {
	C   <-chan []KeyValue
	err error
}

// Err is why the watch ended. It is called after C was closed.
func (w *Watch) Err() error { return w.err }

// IsCompacted says whether an error means that changes are asked for which etcd has
// forgotten: nothing is wrong, but one has to list again.
func IsCompacted(err error) bool { return errors.Is(err, rpctypes.ErrCompacted) }

// Watch tells of all changes under the prefixes from a revision on.
func (c *Conn) Watch(ctx context.Context, prefixes []string, from int64) *Watch {
	changes := make(chan []KeyValue, 64)
	w := &Watch{C: changes}
	go func() {
		defer close(changes)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if err := c.watch(withLeader(ctx), prefixes, from, changes); err != nil {
			w.err = fmt.Errorf("etcd at %s: cannot watch: %w", c.at, err)
		}
	}()
	return w
}

func (c *Conn) watch(ctx context.Context, prefixes []string, from int64, changes chan<- []KeyValue) error {
	stream, err := pb.NewWatchClient(c.conn).Watch(ctx)
	if err != nil {
		return plain(err)
	}
	for _, prefix := range prefixes {
		create := &pb.WatchCreateRequest{Key: []byte(prefix), RangeEnd: []byte(after(prefix)), StartRevision: from, Fragment: true}
		if err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
			break // Recv says why
		}
	}
	for {
		got, err := stream.Recv()
		if err != nil {
			return plain(err)
		}
		if got.Canceled {
			return refused(got)
		}
		if len(got.Events) == 0 {
			continue
		}
		all := make([]KeyValue, len(got.Events))
		for i, e := range got.Events {
			if all[i] = keyValue(e.Kv); e.Type == mvccpb.Event_DELETE {
				all[i] = KeyValue{Key: string(e.Kv.Key), Gone: true}
			}
		}
		select {
		case changes <- all:
		case <-ctx.Done():
			return plain(status.FromContextError(ctx.Err()).Err())
		}
	}
}

// refused is why etcd ends a watch by itself.
func refused(got *pb.WatchResponse) error {
	if got.CompactRevision != 0 {
		return &failure{text: "what came before was compacted", of: rpctypes.ErrCompacted}
	}
	for _, k := range known {
		if strings.Contains(got.CancelReason, k.err) {
			return errors.New(k.text)
		}
	}
	if got.CancelReason == "" {
		return errors.New("etcd ends it")
	}
	return errors.New(got.CancelReason)
}
