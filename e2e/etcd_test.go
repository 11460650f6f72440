// Workers in a real etcd, whole and broken in every way that sources and keepers of keys meet. The server is etcd's
// own, within the test: the module of these tests has it, and Kvasir's has not.

package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"kvasir/command/wiring"
	"kvasir/config"
	"kvasir/config/certtest"
	"kvasir/discovery"
)

// An etcdServer is an etcd of one member, on one address however often it is started.
type etcdServer struct {
	t      *testing.T
	config *embed.Config
	etcd   *embed.Etcd // nil: it does not run
	url    string
}

func startEtcd(t *testing.T, with ...func(*embed.Config)) *etcdServer {
	t.Helper()
	s := &etcdServer{t: t, config: embed.NewConfig()}
	c := s.config
	c.Dir = t.TempDir()
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	c.TickMs, c.ElectionMs = 20, 200 // leases of two seconds need such
	c.UnsafeNoFsync = true
	c.ListenClientUrls = []url.URL{{Scheme: "http", Host: freeAddress(t)}}
	c.ListenPeerUrls = []url.URL{{Scheme: "http", Host: freeAddress(t)}}
	for _, w := range with {
		w(c)
	}
	c.AdvertiseClientUrls, c.AdvertisePeerUrls = c.ListenClientUrls, c.ListenPeerUrls
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	s.url = c.ListenClientUrls[0].String()
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *etcdServer) start() {
	s.t.Helper()
	// On a busy machine its old listeners may be there a little longer than Close says.
	eventually(s.t, patience, "etcd listens", func() bool {
		config := *s.config
		e, err := embed.StartEtcd(&config)
		if err == nil {
			s.etcd = e
		}
		return err == nil
	})
	select {
	case <-s.etcd.Server.ReadyNotify():
	case <-time.After(patience):
		s.t.Fatal("etcd is not ready")
	}
}

func (s *etcdServer) stop() {
	if s.etcd != nil {
		s.etcd.Close()
		s.etcd = nil
	}
}

// wipe removes all data of a server that does not run.
func (s *etcdServer) wipe() {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Join(s.config.Dir, "member")); err != nil {
		s.t.Fatal(err)
	}
}

// client is etcd's own client.
func (s *etcdServer) client(change ...func(*clientv3.Config)) *clientv3.Client {
	s.t.Helper()
	config := clientv3.Config{Endpoints: []string{s.url}, Logger: zap.NewNop(), DialTimeout: patience}
	for _, c := range change {
		c(&config)
	}
	c, err := clientv3.New(config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

const etcdPrefix = "kvasir/workers/"

// put writes worker keys, each NAME=VALUE; a VALUE of a URL is that of a worker, and none removes the key.
func put(t testing.TB, c *clientv3.Client, keys ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, key := range keys {
		name, value, _ := strings.Cut(key, "=")
		var err error
		if strings.HasPrefix(value, "http") {
			value = fmt.Sprintf(`{"url": %q}`, value)
		}
		if value == "" {
			_, err = c.Delete(ctx, etcdPrefix+name)
		} else {
			_, err = c.Put(ctx, etcdPrefix+name, value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A following is a set of one source, as a Kvasir has it, and what it finds.
type following struct {
	t       *testing.T
	set     *discovery.Set
	changes atomic.Int64
}

// follow starts the source of an entry, in YAML without the braces.
func follow(t *testing.T, entry string) *following {
	t.Helper()
	f := &following{t: t}
	f.set = discovery.Start(discovery.Options{Log: zerolog.Nop(), Changed: func() { f.changes.Add(1) }})
	t.Cleanup(f.set.Close)
	f.configure(entry)
	return f
}

func (f *following) configure(entry string) {
	f.t.Helper()
	l := &config.Layers{BuiltIn: []byte("discovery: [{" + entry + "}]")}
	g, _, err := l.Load()
	if err != nil {
		f.t.Fatal(err)
	}
	f.set.Follow(wiring.Sources(g))
}

// ofEtcd is an entry of kind etcd.
func ofEtcd(more string, urls ...string) string {
	return fmt.Sprintf("kind: etcd, grace: 1s, endpoints: ['%s']%s", strings.Join(urls, "', '"), more)
}

func (f *following) urls() string {
	var all []string
	for _, w := range f.set.Found()[0].Workers {
		all = append(all, strings.TrimPrefix(w.URL, "http://"))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// until waits until these are the workers, and the problem has this text in it; "": there is none.
func (f *following) until(urls, problem string) {
	f.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		s := f.set.Status()[0]
		if got := f.urls(); got == urls && (s.Problem == "") == (problem == "") && strings.Contains(s.Problem, problem) {
			return
		} else if time.Now().After(deadline) {
			f.t.Fatalf("workers are %q, problem %q; want %q, %q", got, s.Problem, urls, problem)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestEtcdWorkers: keys come, change, are bad, and go, with their lease as well.
func TestEtcdWorkers(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	c := s.client()
	put(t, c, "a=http://a:1", "b=http://b:1")
	f := follow(t, ofEtcd("", s.url))
	f.until("a:1 b:1", "")
	put(t, c, "c=http://c:1", "b=http://b:2", "a=")
	f.until("b:2 c:1", "")

	// A bad value is told with its key, which keeps what it said; the others go on.
	put(t, c, `b={"url": "http://b:3", "rol": "decode"}`, "d=http://d:1")
	f.until("b:2 c:1 d:1", `kvasir/workers/b: rol: unknown key, did you mean "role"?`)
	put(t, c, "d="+strings.Repeat("x", 100<<10))
	f.until("b:2 c:1 d:1", "kvasir/workers/d: the value has more than 64 KiB")
	put(t, c, "b=http://b:3", "d=http://d:2")
	f.until("b:3 c:1 d:2", "")
	if w := f.set.Found()[0].Workers[0]; w.From != "kvasir/workers/b at "+strings.TrimPrefix(s.url, "http://") || w.Name != "b:3" {
		t.Errorf("the first worker is %+v", w)
	}

	lease, err := c.Grant(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(t.Context(), etcdPrefix+"leased", `{"url": "http://e:1"}`, clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	f.until("b:3 c:1 d:2 e:1", "")
	f.until("b:3 c:1 d:2", "")

	// None at all is believed when a list still says so at the end of the grace.
	put(t, c, "b=", "c=", "d=")
	eventually(t, patience, "the empty list begins", func() bool { return f.urls() != "" })
	f.until("", "")
	put(t, c, "a=http://a:1")
	f.until("a:1", "")

	// An entry that changed reads all values anew.
	f.configure(ofEtcd(", role: decode", s.url))
	eventually(t, patience, "the entry's role counts", func() bool { return f.set.Found()[0].Workers[0].Role == "decode" })
	if errors := f.set.Status()[0].Errors; errors == 0 {
		t.Error("no look was counted that found a bad value")
	}
}

// TestEtcdTwoKeysOfOneWorker: of two keys with one URL the one holds that came first, whatever they are called, and
// that they do not agree is told. Who may write keys cannot take over a worker that is there.
func TestEtcdTwoKeysOfOneWorker(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	c := s.client()
	put(t, c, "m=http://w:1")
	f := follow(t, ofEtcd("", s.url))
	f.until("w:1", "")
	for range 2 {
		put(t, c, `a={"url": "http://w:1", "role": "decode"}`)
		f.until("w:1 w:1", "")
		if m := discovery.Merge(nil, f.set.Found()); len(m.Workers) != 1 || m.Workers[0].Role != "both" || m.Disagree != 1 || !strings.HasPrefix(m.Conflicts[0], "kvasir/workers/m at ") {
			t.Errorf("it is %+v", m)
		}
		f = follow(t, ofEtcd("", s.url)) // by a list
	}
	put(t, c, "m=", "m=http://w:1") // it registers anew
	eventually(t, patience, "the other one is first", func() bool {
		m := discovery.Merge(nil, f.set.Found())
		return len(m.Workers) == 1 && m.Workers[0].Role == "decode" && m.Disagree == 1
	})
}

// TestEtcdAwayWhileTheKeyIsRotated: what a reload changes of an entry counts at once for the workers that are
// known, though etcd is away.
func TestEtcdAwayWhileTheKeyIsRotated(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	put(t, s.client(), "a=http://a:1")
	key := filepath.Join(t.TempDir(), "key")
	write := func(secret string) {
		if err := os.WriteFile(key, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	entry := ofEtcd(", key_file: '"+key+"'", s.url)
	f := follow(t, entry)
	f.until("a:1", "")
	s.stop()
	f.until("a:1", "connection refused")
	write("new")
	f.configure(entry)
	eventually(t, patience, "the new key is sent", func() bool { return f.set.Found()[0].Workers[0].Headers["Authorization"] == "Bearer new" })
	f.until("a:1", "connection refused")
}

// TestEtcdRestarted: while etcd is away what was known holds. One that comes back without its data counts from the
// beginning again, and what happens then must not be taken for what is known already.
func TestEtcdRestarted(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	c := s.client()
	put(t, c, "a=http://a:1", "b=http://b:1")
	for range 50 { // so that the new one is behind the old one for long
		put(t, c, "b=http://b:2", "b=http://b:1")
	}
	f := follow(t, ofEtcd("", s.url))
	f.until("a:1 b:1", "")

	s.stop()
	f.until("a:1 b:1", "connection refused")
	s.start()
	f.until("a:1 b:1", "")
	put(t, c, "c=http://c:1")
	f.until("a:1 b:1 c:1", "")

	s.stop()
	s.wipe()
	s.start()
	put(t, c, "d=http://d:1")
	f.until("d:1", "")
	put(t, c, "e=http://e:1")
	f.until("d:1 e:1", "")
}

// TestEtcdCompacted: what happened while the connection was lost was compacted before it came back.
func TestEtcdCompacted(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	c := s.client()
	put(t, c, "a=http://a:1", "b=http://b:1")
	w := newWire(t, strings.TrimPrefix(s.url, "http://"))
	f := follow(t, ofEtcd("", "http://"+w.Listen))
	f.until("a:1 b:1", "")
	for i := range 4 {
		w.Stop()
		put(t, c, "a=", fmt.Sprintf("c=http://c:%d", i+1))
		got, err := c.Get(t.Context(), etcdPrefix)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Compact(t.Context(), got.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
			t.Fatal(err)
		}
		eventually(t, patience, "toxiproxy listens again", func() bool { return w.Start() == nil })
		f.until(fmt.Sprintf("b:1 c:%d", i+1), "")
	}
}

// TestEtcdAway: who starts before etcd waits for nobody, and one server of several is enough.
func TestEtcdAway(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	put(t, s.client(), "a=http://a:1")
	s.stop()
	gone := "http://" + freeAddress(t)
	f := follow(t, ofEtcd("", gone, s.url))
	began := time.Now()
	f.set.Settle(patience)
	if waited := time.Since(began); waited > 10*time.Second {
		t.Errorf("it took %v to see that nobody is there", waited)
	}
	f.until("", "etcd at "+strings.TrimPrefix(gone, "http://")+": cannot list kvasir/workers/: connection refused")
	s.start()
	f.until("a:1", "")
}

// TestEtcdUsers: a user that is missing or wrong, or may not read the keys, is told, and one that may is served for
// longer than its token is good.
func TestEtcdUsers(t *testing.T) {
	t.Parallel()
	s := startEtcd(t, func(c *embed.Config) { c.AuthTokenTTL, c.BcryptCost = 1, 4 }) // the least: passwords are not what is tested
	c := s.client()
	put(t, c, "a=http://a:1")
	ctx := t.Context()
	for _, step := range []func() error{
		func() error { _, err := c.RoleAdd(ctx, "root"); return err },
		func() error { _, err := c.UserAdd(ctx, "root", "r"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.UserAdd(ctx, "kvasir", "s3cret"); return err },
		func() error { _, err := c.RoleAdd(ctx, "reader"); return err },
		func() error {
			_, err := c.RoleGrantPermission(ctx, "reader", etcdPrefix, clientv3.GetPrefixRangeEnd(etcdPrefix), clientv3.PermissionType(clientv3.PermRead))
			return err
		},
		func() error { _, err := c.UserGrantRole(ctx, "kvasir", "reader"); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	root := s.client(func(c *clientv3.Config) { c.Username, c.Password = "root", "r" })
	password := func(text string) string {
		file := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	follow(t, ofEtcd("", s.url)).until("", "it wants a user; set user and password_file")
	follow(t, ofEtcd(", user: kvasir, password_file: "+password("wrong"), s.url)).until("", "the user or the password is wrong")
	may := ", user: kvasir, password_file: " + password("s3cret")
	follow(t, ofEtcd(may+", prefix: other/", s.url)).until("", "the user may not do this; grant its role the prefix")
	f := follow(t, ofEtcd(may, s.url))
	f.until("a:1", "")
	// Its token ends, and what comes of it is seen all the same; the list at the end of the grace needs another one.
	put(t, root, "a=")
	f.until("", "")
	put(t, root, "b=http://b:1")
	f.until("b:1", "")
}

// TestEtcdTLS: certificates of both sides, and what is said where they do not fit.
func TestEtcdTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	ca := certtest.Write(t, file("ca.pem"), file("ca.key"), "ca", nil)
	certtest.Write(t, file("etcd.pem"), file("etcd.key"), "etcd", ca)
	certtest.Write(t, file("kvasir.pem"), file("kvasir.key"), "kvasir", ca)
	certtest.Write(t, file("other.pem"), file("other.key"), "other", nil)
	info := transport.TLSInfo{CertFile: file("etcd.pem"), KeyFile: file("etcd.key"), TrustedCAFile: file("ca.pem"), ClientCertAuth: true}
	s := startEtcd(t, func(c *embed.Config) {
		c.ListenClientUrls[0].Scheme, c.ClientTLSInfo = "https", info
	})
	of, err := transport.TLSInfo{CertFile: file("kvasir.pem"), KeyFile: file("kvasir.key"), TrustedCAFile: file("ca.pem")}.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	put(t, s.client(func(c *clientv3.Config) { c.TLS = of }), "a=http://a:1")

	own := fmt.Sprintf("cert: %s, key: %s", file("kvasir.pem"), file("kvasir.key"))
	follow(t, ofEtcd(fmt.Sprintf(", tls: {ca: %s, %s}", file("ca.pem"), own), s.url)).until("a:1", "")
	follow(t, ofEtcd(fmt.Sprintf(", tls: {ca: %s, %s}", file("other.pem"), own), s.url)).until("", "certificate signed by unknown authority")
	follow(t, ofEtcd(fmt.Sprintf(", tls: {ca: %s}", file("ca.pem")), s.url)).until("", "or want a certificate of ours (tls.cert)")
	follow(t, ofEtcd("", strings.Replace(s.url, "https:", "http:", 1))).until("", "it speaks no HTTP/2, or TLS where http:// stands")
	plain := startEtcd(t)
	follow(t, ofEtcd(", tls: {insecure: true}", strings.Replace(plain.url, "http:", "https:", 1))).until("", "it may speak no TLS")
}

// TestEtcdManyKeys: a thousand workers of which many flap are a few changes, and too many keys are a mistake.
func TestEtcdManyKeys(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	c := s.client()
	all := make([]string, 1000)
	var want []string
	for i := range all {
		all[i] = fmt.Sprintf("w%04d=http://h%04d:1", i, i)
		want = append(want, fmt.Sprintf("h%04d:1", i))
	}
	put(t, c, all[:500]...)
	f := follow(t, ofEtcd("", s.url))
	put(t, c, all[500:]...)
	f.until(strings.Join(want, " "), "")
	before := f.changes.Load()
	began := time.Now()
	for range 10 {
		for i := range 100 {
			put(t, c, fmt.Sprintf("w%04d=", i))
		}
		put(t, c, all[:100]...)
	}
	f.until(strings.Join(want, " "), "")
	if most := int64(time.Since(began)/(500*time.Millisecond)) + 2; f.changes.Load()-before > most {
		t.Errorf("2,000 changes of keys were %d changes, more than %d", f.changes.Load()-before, most)
	}
	for i := 0; i < 4096; i += 100 {
		var puts []clientv3.Op
		for j := range 100 {
			puts = append(puts, clientv3.OpPut(fmt.Sprintf("%sx%04d", etcdPrefix, i+j), fmt.Sprintf(`{"url": "http://x%04d:1"}`, i+j)))
		}
		if _, err := c.Txn(t.Context()).Then(puts...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, patience, "too many keys are told", func() bool {
		return strings.Contains(f.set.Status()[0].Problem, "keys, more than 4096")
	})
	if len(f.set.Found()[0].Workers) == 0 {
		t.Error("what was known does not hold")
	}
}
