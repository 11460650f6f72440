// Peers: an Exchange whose messages go over NATS.

// Package peers connects this Kvasir with the others before the same workers, over NATS, so that
// each knows what all have under way. What is said is package kvroute/peering.
//
//	p, err := peers.Start(peers.Options{Log: log, Name: host, Group: "kvasir", Servers: []string{"nats://10.0.0.9:4222"}})
//	pool := kvroute.NewPool(kvroute.PoolOptions{News: p.Tell, ...})
//	p.SetWorkers(map[string]*kvroute.Worker{"http://10.0.0.5:8000": w})
//	p.Close()
//
// Nothing waits for NATS: while it is away this Kvasir goes on alone, and what was to be said is
// dropped. Each Kvasir publishes to one subject, kvasir.peers.GROUP, and subscribes to it.
package peers

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/rs/zerolog"

	"kvasir/kvroute"
	"kvasir/kvroute/peering"
)

// Options say where NATS is, and who this is.
type Options struct {
	Log     zerolog.Logger
	Name    string // of this Kvasir, for people
	Group   string // those of one group hear each other
	Servers []string
	Token   string      // "": none
	Creds   []byte      // of a NATS credentials file; nil: none
	Seed    []byte      // of an nkey; nil: none
	TLS     *tls.Config // nil: as the servers ask for

	// Server is a NATS server inside this process, instead of Servers; nil: there is none.
	// Close stops it.
	Server Server
}

// A Server is a NATS server inside this process.
type Server interface {
	nats.InProcessConnProvider
	Token() string   // that a client shows
	Problem() string // why it does not reach others; "": it does, or needs not
	Close()
}

// Peers is this Kvasir's side. A nil one knows of nobody.
type Peers struct {
	options  Options
	exchange *peering.Exchange
	conn     atomic.Pointer[nats.Conn] // nil: NATS was not tried yet; written by run
	subject  string
	ready    chan struct{} // there is something to say

	spending sync.Mutex // guards what follows; taken with the exchange's lock held
	spent    func(now time.Time, account uint64, amount float64)
	early    map[uint64]early // by account: what was heard before HearSpent

	stop    chan struct{}
	ended   chan struct{}
	closing sync.Once

	in, out, inBytes, outBytes   atomic.Uint64
	malformed, foreign, unserved atomic.Uint64
	slow                         atomic.Uint64 // messages of others that NATS dropped, because too many waited here

	mu    sync.Mutex // guards what follows
	away  string     // why NATS is; "": it is not
	since time.Time
	told  map[byte]bool // versions that the log has

	refused  string          // what NATS does not permit on this connection; "": nothing is known of
	troubles map[string]bool // what the log has of NATS's problems
}

// Bounds of what waits here until it is taken; what is more is dropped, as a gap.
const (
	mostWaiting      = 8192
	mostWaitingBytes = 32 << 20
)

// Start begins to connect, and returns at once: until NATS is reached Status has a problem. The
// error is about options that can never work.
func Start(o Options) (*Peers, error) {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	p := &Peers{
		options: o, subject: "kvasir.peers." + o.Group, ready: make(chan struct{}, 1),
		stop: make(chan struct{}), ended: make(chan struct{}), told: map[byte]bool{}, troubles: map[string]bool{},
		away: "not connected yet", since: time.Now(),
	}
	p.exchange = peering.New(peering.Options{
		ID: binary.LittleEndian.Uint64(id[:]), Name: o.Name, Ready: p.wake, Spent: p.hearSpent, Known: p.known,
	})
	options, err := credentials(&o)
	if err == nil {
		err = possible(&o, options)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go p.run(ctx, cancel, p.natsOptions(ctx, options))
	return p, nil
}

// possible finds what can never work, without the network: URLs and options that NATS' client
// does not take, and credentials that are none.
func possible(o *Options, options []nats.Option) error {
	if o.Creds != nil {
		_, err := nkeys.ParseDecoratedJWT(o.Creds)
		if err == nil {
			_, err = nkeys.ParseDecoratedNKey(o.Creds)
		}
		if err != nil {
			return fmt.Errorf("cannot read the NATS credentials: %w", err)
		}
	}
	if o.Server != nil {
		return nil
	}
	_, err := nats.Connect(strings.Join(o.Servers, ","), append(slices.Clone(options), nats.SetCustomDialer(nowhere{}))...)
	if !errors.Is(err, errNowhere) {
		return fmt.Errorf("cannot use peers.servers: %w", err)
	}
	return nil
}

// nowhere is a network that nobody is in.
type nowhere struct{}

var errNowhere = errors.New("nothing is dialed yet")

func (nowhere) Dial(string, string) (net.Conn, error) { return nil, errNowhere }

// natsOptions are those of the connection, which is dialed as long as ctx holds.
func (p *Peers) natsOptions(ctx context.Context, options []nats.Option) []nats.Option {
	return append(options,
		nats.SetCustomDialer(dialer{ctx}),
		nats.NoEcho(), nats.NoCallbacksAfterClientClose(), nats.ReconnectBufSize(-1),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(reconnect), nats.ReconnectJitter(reconnect/2, reconnect/2),
		nats.PingInterval(2*time.Second), nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(func(*nats.Conn) { p.setAway("") }),
		nats.ReconnectHandler(func(*nats.Conn) { p.setAway("") }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { p.setAway(reason(err)) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { p.setAway(reason(err)) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { p.trouble(err) }),
	)
}

// connect tries each server once, which takes up to patience for each that does not answer, and
// subscribes. From then on NATS' client goes on by itself, whether one of them answered or not.
func (p *Peers) connect(options []nats.Option, connected chan<- *nats.Conn) {
	conn, err := nats.Connect(strings.Join(p.options.Servers, ","), options...)
	if err == nil {
		var sub *nats.Subscription
		if sub, err = conn.Subscribe(p.subject, p.hear); err == nil {
			err = sub.SetPendingLimits(mostWaiting, mostWaitingBytes)
		}
	}
	if err != nil { // possible should have found it
		p.setAway(err.Error())
	}
	connected <- conn
}

const (
	reconnect  = 500 * time.Millisecond
	patience   = 2 * time.Second // to connect, and for a write to NATS
	closePause = 200 * time.Millisecond
)

// credentials are how NATS is reached, and who this is to it.
func credentials(o *Options) ([]nats.Option, error) {
	options := []nats.Option{nats.Name("kvasir " + o.Name), nats.Timeout(patience), nats.FlusherTimeout(patience), nats.SkipHostLookup()}
	if o.Server != nil {
		return append(options, nats.InProcessServer(o.Server), nats.Token(o.Server.Token())), nil
	}
	if o.TLS != nil {
		options = append(options, nats.Secure(o.TLS))
	}
	if o.Token != "" {
		options = append(options, nats.Token(o.Token))
	}
	if o.Creds != nil {
		options = append(options, nats.UserCredentialBytes(o.Creds))
	}
	if o.Seed != nil {
		pair, err := nkeys.FromSeed(o.Seed)
		if err != nil {
			return nil, fmt.Errorf("cannot read the seed of an nkey: %w", err)
		}
		public, err := pair.PublicKey()
		if err != nil {
			return nil, fmt.Errorf("cannot read the seed of an nkey: %w", err)
		}
		options = append(options, nats.Nkey(public, pair.Sign))
	}
	return options, nil
}

func reason(err error) string {
	if err == nil {
		return "the connection is closed"
	}
	return err.Error()
}

// setAway notes that NATS is away, or back. The log hears of the first of each.
func (p *Peers) setAway(why string) {
	p.mu.Lock()
	was := p.away
	p.away = why
	if why == "" {
		p.refused = "" // it is asked again
	}
	if (was == "") != (why == "") {
		p.since = time.Now()
	}
	p.mu.Unlock()
	switch {
	case why == "" && was != "":
		p.options.Log.Info().Str("subject", p.subject).Msg("connected to NATS; what replicas place is shared")
	case why != "" && (was == "" || was == "not connected yet" && why != was):
		p.options.Log.Warn().Str("problem", why).Msg("NATS is away; each replica places alone until it is back")
	}
}

// mostTroubles is how many different problems the log has.
const mostTroubles = 64

// trouble takes what NATS says of the connection beside its end.
func (p *Peers) trouble(err error) {
	if errors.Is(err, nats.ErrSlowConsumer) {
		p.slow.Add(1) // the missing numbers ask for a snapshot
		return
	}
	why := err.Error()
	p.mu.Lock()
	if errors.Is(err, nats.ErrPermissionViolation) {
		p.refused = why
	}
	known := p.troubles[why] || len(p.troubles) >= mostTroubles
	if !known {
		p.troubles[why] = true
	}
	p.mu.Unlock()
	if !known { // each message that may not be published is one
		p.options.Log.Warn().Str("problem", why).Msg("NATS tells of a problem")
	}
}

func (p *Peers) known(name string, known bool) {
	if known {
		p.options.Log.Info().Str("peer", name).Msg("another Kvasir before the same workers is known")
		return
	}
	p.options.Log.Info().Str("peer", name).Msg("another Kvasir is gone, and what it had under way is forgotten")
}

func (p *Peers) wake() {
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

// hear takes a message of others. NATS calls it for one after the other.
func (p *Peers) hear(m *nats.Msg) {
	if len(m.Data) == 0 {
		return // of Check
	}
	p.in.Add(1)
	p.inBytes.Add(uint64(len(m.Data)))
	err := p.exchange.Take(time.Now(), m.Data)
	switch {
	case err == nil, errors.Is(err, peering.ErrStale):
	case errors.Is(err, peering.ErrVersion):
		p.foreign.Add(1)
		p.tellVersion(m.Data[0])
	default:
		p.malformed.Add(1)
	}
}

// tellVersion logs once that there is a Kvasir of another version of messages.
func (p *Peers) tellVersion(version byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.told[version] {
		p.told[version] = true
		p.options.Log.Warn().Uint8("version", version).Msg("a replica of Kvasir speaks another version between replicas; it is ignored until both are the same")
	}
}

// run connects, and says what there is to say, until Close. It is the only one that dials: nobody
// waits for NATS, nor does the start.
func (p *Peers) run(ctx context.Context, cancel context.CancelFunc, options []nats.Option) {
	defer close(p.ended)
	defer cancel()
	connected := make(chan *nats.Conn, 1)
	go p.connect(options, connected)
	beat := time.NewTicker(peering.Heartbeat)
	defer beat.Stop()
	gather := time.NewTimer(0)
	<-gather.C
	for {
		select {
		case conn := <-connected:
			p.conn.Store(conn)
			p.publish(p.exchange.Tick(time.Now()))
		case <-p.stop:
			if p.conn.Load() == nil {
				cancel() // what is being dialed
				p.conn.Store(<-connected)
			}
			p.exchange.Leave()
			p.publish(p.exchange.Flush(time.Now()))
			p.hangUp()
			return
		case <-beat.C:
			p.publish(p.exchange.Tick(time.Now()))
		case <-p.ready:
			gather.Reset(peering.Gather)
		case <-gather.C:
			messages := p.exchange.Flush(time.Now())
			if p.exchange.Peers() > 0 { // a newcomer gets a snapshot
				p.publish(messages)
			}
		}
	}
}

func (p *Peers) publish(messages [][]byte) {
	conn := p.conn.Load() // a nil one takes nothing
	for _, m := range messages {
		if err := conn.Publish(p.subject, m); err != nil {
			p.unserved.Add(1)
			continue
		}
		p.out.Add(1)
		p.outBytes.Add(uint64(len(m)))
	}
}

// hangUp ends the connection.
func (p *Peers) hangUp() {
	conn := p.conn.Load()
	if conn == nil {
		return
	}
	if conn.IsConnected() {
		_ = conn.FlushTimeout(closePause)
	}
	conn.Close()
}

// Tell takes what a pool says of its placements: kvroute.PoolOptions.News.
func (p *Peers) Tell(n kvroute.News) bool { return p.exchange.Tell(n) }

// Spend tells others what an account has used here.
func (p *Peers) Spend(account uint64, amount float64) { p.exchange.Spend(account, amount) }

// Making tells others that an answer is being made here, until Made; false: it is not told. A nil
// Peers tells nobody.
func (p *Peers) Making(key uint64) bool { return p != nil && p.exchange.Making(key) }

// Made ends what Making began; stored: the answer is in the cache that all have, or will soon be.
func (p *Peers) Made(key uint64, stored bool) { p.exchange.Made(key, stored) }

// Elsewhere returns the answer of that key that another Kvasir is making; nil: nobody is known to,
// or p is nil.
func (p *Peers) Elsewhere(key uint64) *peering.Elsewhere {
	if p == nil {
		return nil
	}
	return p.exchange.Elsewhere(key)
}

// An early amount is what others have let an account use, since it was first heard of.
type early struct {
	amount float64
	since  time.Time
}

// mostEarly bounds the accounts that are heard of before HearSpent.
const mostEarly = 1 << 14

// HearSpent has f told what other Kvasirs have let an account use, also before: what they have used
// in the last minute comes once, maybe while this one still starts. It must not call p.
func (p *Peers) HearSpent(f func(now time.Time, account uint64, amount float64)) {
	p.spending.Lock()
	defer p.spending.Unlock()
	p.spent = f
	for account, e := range p.early {
		f(e.since, account, e.amount)
	}
	p.early = nil
}

func (p *Peers) hearSpent(now time.Time, account uint64, amount float64) {
	p.spending.Lock()
	defer p.spending.Unlock()
	if p.spent != nil {
		p.spent(now, account, amount)
		return
	}
	e, known := p.early[account]
	if !known {
		if len(p.early) >= mostEarly {
			return
		}
		e.since = now
	}
	e.amount += amount
	if p.early == nil {
		p.early = map[uint64]early{}
	}
	p.early[account] = e
}

// Others returns how many other Kvasirs are known; 0 of a nil Peers.
func (p *Peers) Others() int {
	if p == nil {
		return 0
	}
	return p.exchange.Peers()
}

// SetWorkers says which workers are served now, by their URLs in canonical form.
func (p *Peers) SetWorkers(workers map[string]*kvroute.Worker) {
	byKey := make(map[uint64]*kvroute.Worker, len(workers))
	host, _ := os.Hostname()
	for at, w := range workers {
		byKey[peering.Key(between(at, host))] = w
	}
	p.exchange.SetWorkers(time.Now(), byKey)
}

// between is what a worker is called between hosts: one at a loopback address is this host's own.
func between(raw, host string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return host + " " + raw
	}
	return raw
}

// Status is how it goes.
type Status struct {
	peering.Stats
	Problem                      string // why nothing is shared; "": it is, if there is anybody
	In, Out, InBytes, OutBytes   uint64 // messages of others and own
	Malformed, Foreign, Unserved uint64 // that could not be read, of another version, that NATS did not take
	Slow                         uint64
}

// Status returns it at this moment.
func (p *Peers) Status() Status {
	s := Status{
		Stats: p.exchange.Stats(), In: p.in.Load(), Out: p.out.Load(), InBytes: p.inBytes.Load(), OutBytes: p.outBytes.Load(),
		Malformed: p.malformed.Load(), Foreign: p.foreign.Load(), Unserved: p.unserved.Load(), Slow: p.slow.Load(),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.away != "":
		s.Problem = fmt.Sprintf("NATS is away since %s: %s", p.since.UTC().Format(time.RFC3339), p.away)
	case p.refused != "":
		s.Problem = "NATS does not let this user share: " + p.refused
	case p.options.Server != nil:
		s.Problem = p.options.Server.Problem()
	}
	return s
}

// Close says that this Kvasir leaves, and waits for all that was started. It takes a moment, or
// patience where a server that was never reached has just taken the connection and says nothing.
func (p *Peers) Close() {
	if p == nil {
		return
	}
	p.closing.Do(p.close)
}

func (p *Peers) close() {
	close(p.stop)
	<-p.ended
	p.exchange.Forget(time.Now())
	if p.options.Server != nil {
		p.options.Server.Close()
	}
}

// Check connects once, and says how long NATS took to answer.
func Check(ctx context.Context, o Options) (time.Duration, error) {
	options, err := credentials(&o)
	if err != nil {
		return 0, err
	}
	options = append(options, nats.NoReconnect(), nats.SetCustomDialer(dialer{ctx}))
	conn, err := nats.Connect(strings.Join(o.Servers, ","), options...)
	if err != nil {
		return 0, fmt.Errorf("cannot connect to NATS: %w", err)
	}
	defer conn.Close()
	rtt, err := conn.RTT()
	if err != nil {
		return 0, fmt.Errorf("NATS does not answer: %w", err)
	}
	// Whether this user may publish and subscribe is told after the fact.
	sub, err := conn.SubscribeSync("kvasir.peers." + o.Group)
	if err == nil {
		err = conn.FlushTimeout(patience)
	}
	if err == nil {
		err = conn.Publish("kvasir.peers."+o.Group, nil) // of no length: nobody takes it for more
	}
	if err == nil {
		err = conn.FlushTimeout(patience)
	}
	if err == nil {
		err = conn.LastError()
	}
	if err != nil {
		return 0, fmt.Errorf("cannot publish to kvasir.peers.%s: %w", o.Group, err)
	}
	_ = sub.Unsubscribe()
	return rtt, nil
}

// dialer ends with its context.
type dialer struct{ ctx context.Context }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	dial := net.Dialer{Timeout: patience}
	return dial.DialContext(d.ctx, network, address)
}
