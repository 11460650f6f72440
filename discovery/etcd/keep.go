// One key that is kept in etcd by a lease, for as long as somebody stands behind it.

package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// removeWithin bounds the removal of a key when its keeper ends: who stopped it waits.
const removeWithin = 3 * time.Second

// A Keeper keeps one key.
//
//  1. The key is there while the keeper runs and reaches etcd, and no longer than the lease
//     when it does not, however it ended.
//  2. It writes over a key of somebody else only when it begins: of two keepers of one key
//     the later one has it, and the other one waits until it is gone.
type Keeper struct {
	Options Options
	Key     string
	Value   []byte
	Lease   time.Duration // whole seconds

	// Tell hears of each change of State, or of its reason, from the goroutine of Run. err is why it is not Kept.
	Tell func(s State, err error)

	lease int64 // of ours; 0: none
	begun bool  // the key was written once
	told  State
	why   string
}

// A State is how a key fares.
type State int

// The states of a key.
const (
	Unknown State = iota // Run has just begun
	Kept                 // it is there, by our lease
	Taken                // somebody else has written it, by a lease of their own
	Lost                 // etcd cannot be asked; it is there until the lease ends
)

// Run keeps the key until ctx ends, and then removes it. The error is that of the removal.
func (k *Keeper) Run(ctx context.Context) error {
	const least, most = 200 * time.Millisecond, 2 * time.Second
	for pause := least; ; pause = min(2*pause, most) {
		began := time.Now()
		held, err := k.hold(ctx)
		if ctx.Err() != nil {
			return k.remove()
		}
		// A connection that broke is no trouble yet: perhaps the next one is as good.
		if held && time.Since(began) > most {
			pause = least
			continue
		}
		k.tell(Lost, err)
		rest := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			rest.Stop()
			return k.remove()
		case <-rest.C:
		}
	}
}

func (k *Keeper) tell(s State, err error) {
	why := ""
	if err != nil {
		why = err.Error()
	}
	if s != k.told || why != k.why {
		k.told, k.why = s, why
		k.Tell(s, err)
	}
}

// hold writes the key and renews its lease until something fails. held: the key was
// written.
func (k *Keeper) hold(ctx context.Context) (held bool, err error) {
	conn, err := Try(ctx, &k.Options, func(c *Conn) error { return k.write(ctx, c) })
	if err != nil {
		return false, err
	}
	defer conn.Close()
	return true, k.renew(ctx, conn)
}

// renew renews the lease and looks after the key until something fails.
func (k *Keeper) renew(ctx context.Context, conn *Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := pb.NewLeaseClient(conn.conn).LeaseKeepAlive(withLeader(ctx))
	if err != nil {
		cancel()
		return plain(err)
	}
	renewed, broken := make(chan int64), make(chan error, 1)
	var receiving sync.WaitGroup
	defer receiving.Wait()
	defer cancel()
	receiving.Go(func() { broken <- receive(ctx, stream, renewed) })
	beat := time.NewTicker(k.Lease / 3)
	defer beat.Stop()
	for {
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: k.lease}); err != nil && !errors.Is(err, io.EOF) { // EOF: Recv says why
			return plain(err)
		}
		select {
		case ttl := <-renewed:
			if ttl <= 0 {
				k.lease = 0 // it has ended, or an etcd without its data does not know it
			}
		case err := <-broken:
			return err
		case <-beat.C:
			return fmt.Errorf("etcd at %s: the lease was not renewed within %v", conn.at, k.Lease/3)
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := k.write(ctx, conn); err != nil {
			return fmt.Errorf("etcd at %s: %w", conn.at, err)
		}
		select {
		case <-beat.C:
		case err := <-broken:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// receive passes on what is left of the lease each time that it was renewed, and returns
// why that ended.
func receive(ctx context.Context, stream pb.Lease_LeaseKeepAliveClient, renewed chan<- int64) error {
	for {
		got, err := stream.Recv()
		if err != nil {
			return plain(err)
		}
		select {
		case renewed <- got.TTL:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// write sees to it that the key is there, by a lease of ours, unless somebody else has it.
func (k *Keeper) write(ctx context.Context, c *Conn) error {
	for {
		if k.lease == 0 {
			if err := k.grant(ctx, c); err != nil {
				return err
			}
		}
		owner, err := k.claim(ctx, c)
		switch {
		case errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound):
			k.lease = 0 // it ended while nobody renewed it
			continue
		case err != nil:
			return fmt.Errorf("cannot write %s: %w", k.Key, plain(err))
		case owner != k.lease:
			k.tell(Taken, nil)
		default:
			k.begun = true
			k.tell(Kept, nil)
		}
		return nil
	}
}

func (k *Keeper) grant(ctx context.Context, c *Conn) error {
	ctx, cancel := context.WithTimeout(withLeader(ctx), patience)
	defer cancel()
	got, err := pb.NewLeaseClient(c.conn).LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: int64(k.Lease / time.Second)})
	if err != nil {
		return fmt.Errorf("cannot get a lease: %w", plain(err))
	}
	k.lease = got.ID
	return nil
}

// claim writes the key unless it is there, the first time also if it is. It returns whose
// lease the key has.
func (k *Keeper) claim(ctx context.Context, c *Conn) (owner int64, err error) {
	ctx, cancel := context.WithTimeout(withLeader(ctx), patience)
	defer cancel()
	key := []byte(k.Key)
	put := &pb.PutRequest{Key: key, Value: k.Value, Lease: k.lease}
	if !k.begun {
		_, err := c.kv.Put(ctx, put)
		return k.lease, err
	}
	got, err := c.kv.Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{{
			Key: key, Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_CreateRevision{CreateRevision: 0},
		}},
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: put}}},
		Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}},
	})
	if err != nil || got.Succeeded {
		return k.lease, err
	}
	for _, r := range got.Responses {
		for _, kv := range r.GetResponseRange().GetKvs() {
			return kv.Lease, nil
		}
	}
	return k.lease, nil
}

// remove gives up the lease, and with it the key, if that is still ours.
func (k *Keeper) remove() error {
	if k.lease == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeWithin)
	defer cancel()
	conn, err := Try(ctx, &k.Options, func(c *Conn) error {
		_, err := pb.NewLeaseClient(c.conn).LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: k.lease})
		if errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound) {
			return nil
		}
		return plain(err)
	})
	if err != nil {
		return err
	}
	conn.Close()
	return nil
}
