// Everything that runs, started in order and stopped in reverse.

// Package serve is the Kvasir that runs: it listens, reloads, tells of trouble
// and ends in good order.
//
//	err := serve.Run(layers, "v1.2.3", signals)
package serve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/fsnotify/fsnotify"
	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"kvasir/admin"
	"kvasir/apidoc"
	"kvasir/cache"
	"kvasir/command/listener"
	"kvasir/command/wiring"
	"kvasir/config"
	"kvasir/discovery"
	"kvasir/edge"
	"kvasir/filewatch"
	"kvasir/gpu"
	"kvasir/page"
	"kvasir/peers"
	"kvasir/planner/keda"
	"kvasir/proxy"
	"kvasir/tracing"
	"kvasir/wording"
)

// A server is one running Kvasir. start brings its parts up in the order of
// its fields, stop takes them down in reverse.
type server struct {
	log        zerolog.Logger
	notify     notifier
	version    string
	layers     *config.Layers
	shutdown   *shutdown
	engines    *wiring.Engines
	store      cache.Store  // nil: cache.store is off
	monitor    *gpu.Monitor // of this host's GPUs; nil: gpu.mode is off. From start on guarded by reloading
	storeWatch *storeWatch
	peers      *peers.Peers // nil: peers names none
	proxy      *proxy.Proxy
	tracing    *tracing.Tracing
	planning   *planning      // nil: nobody asks how many workers there should be
	discovery  *discovery.Set // sources of workers
	api        net.Listener
	admin      net.Listener // nil: switched off
	page       *page.Page   // of the admin listener; nil: there is none
	tls        *listenerTLS // nil: plain HTTP
	keda       *keda.Server // nil: KEDA is not answered
	kedaTLS    *listenerTLS // nil: without TLS
	watcher    *watcher
	files      uint64         // how many may be open; 0: not known
	serving    sync.WaitGroup // of the listeners

	inForce  atomic.Pointer[config.Generation] // current, for who does not wait for a reload
	reloaded reloads

	failed chan error // why a listener or an engine stopped by itself

	reloads   sync.WaitGroup // of the goroutine that reloads at SIGHUP
	noReloads chan struct{}  // closed to stop that goroutine; nil: it was never started

	reloading sync.Mutex     // held for a whole reload; guards the fields below
	started   *config.Config // as it was at the start: keys that need a restart still have these values
	current   *config.Generation
	read      config.Contents // of current
	settled   *proxy.Settings // that are served, without the workers that discovery found; nil: not yet
	conflicts []string        // of sources, as they were told last
	observed  bool            // by tracing, which was on once
}

// Run serves the configuration of the layers until one of StopSignals comes, or
// until it cannot go on; SIGHUP reads the layers again. version is what Kvasir
// says of itself. The error is of type config.Problems where the configuration
// cannot be used.
func Run(l *config.Layers, version string, signals <-chan os.Signal) error {
	e := newShutdown(signals)
	defer e.close()
	g, read, err := l.Load()
	if err != nil {
		return err
	}
	setLogLevel(g.Config.Log.Level)
	log, buffer := newLog(os.Stderr, g.Config.Log.Format)
	defer buffer.Close()

	e.drain.Store(&g.Config.Server.Drain)
	s := &server{log: log, notify: notifier{log, os.Getenv("NOTIFY_SOCKET")}, version: version, layers: l, shutdown: e, failed: make(chan error, 8), started: g.Config, current: g, read: read}
	s.inForce.Store(g)
	if err := s.start(); err != nil {
		s.stop()
		return err
	}
	return s.run()
}

func (s *server) start() error {
	c := s.started
	err := s.limits()
	if err != nil {
		return err
	}
	if s.engines, err = wiring.StartEngines(c.Simulate, s.fail); err != nil {
		return err
	}
	if s.store, err = wiring.OpenStore(s.log, s.current); err != nil {
		return err
	}
	s.monitor = startMonitor(s.log, &c.GPU, nil)
	if s.peers, err = wiring.StartPeers(s.log, s.current); err != nil {
		return err
	}
	p, err := proxy.New(s.log, s.version)
	if err != nil {
		return err
	}
	s.proxy = p
	if s.files > 0 {
		p.LimitFiles(s.files)
	}
	settings, err := s.settings(s.current, s.monitor)
	if err != nil {
		return err
	}
	s.tracing = tracing.New(s.log, p.SetReason)
	p.Count(s.tracing)
	if err = s.trace(s.current); err != nil {
		return err
	}
	s.startDiscovery()
	s.reloading.Lock()
	err = s.apply(settings, p.Apply)
	s.reloading.Unlock()
	if err != nil {
		return err
	}
	if s.api, err = listener.Open(c.Server.Listen); err != nil {
		return fmt.Errorf("server.listen (--listen): %w", err)
	}
	if err = s.openAdmin(); err != nil {
		return err
	}
	var tlsConf *tls.Config
	if s.current.TLS != nil {
		s.tls = &listenerTLS{}
		s.tls.now.Store(s.current.TLS)
		tlsConf = s.tls.config("http/1.1")
	}
	s.watchFiles()
	if err = s.openKEDA(); err != nil {
		return err
	}
	s.planning = startPlanning(s.log, c, p, s.keda)
	s.greet()
	s.storeWatch = watchStore(s.log, s.store)
	s.noReloads = make(chan struct{})
	s.reloads.Add(1)
	go s.reloadAtSignals()
	if s.admin != nil {
		s.page = s.startPage()
		s.serving.Add(1)
		go s.serveAdmin()
	}
	s.serving.Add(1)
	go s.serveAPI(tlsConf)
	return nil
}

func (s *server) serveAPI(tlsConf *tls.Config) {
	defer s.serving.Done()
	if err := s.proxy.Serve(s.api, tlsConf); err != nil {
		s.fail(fmt.Errorf("cannot serve on %q: %w", s.started.Server.Listen, err))
	}
}

func (s *server) serveAdmin() {
	defer s.serving.Done()
	if err := s.proxy.ServeAdmin(s.admin, s.adminRoutes()); err != nil {
		s.fail(fmt.Errorf("cannot serve on %q: %w", s.started.Server.Admin, err))
	}
}

// adminRoutes are the routes of the admin listener, over the proxy and this server.
func (s *server) adminRoutes() fasthttp.RequestHandler {
	p := s.proxy
	return admin.Handler(&admin.Options{
		Log: s.log, Hosts: p.AdminHosts, Key: p.AdminKey, Metrics: p.Metrics(), Page: s.page,
		Readiness: p.Readiness, Fleet: p.Fleet, Cache: p.Cache, Explain: p.Explain, Explained: apidoc.Of[proxy.PlacementExplained](), Reload: s.reload, Plan: s.planning.Report,
		Classifier: func() admin.Classifier {
			c, attack, model := p.Judging()
			return admin.Classifier{Classifier: c, Attack: attack, Model: model}
		},
	})
}

// fail ends run with the first error; later ones are only logged.
func (s *server) fail(err error) {
	select {
	case s.failed <- err:
	default:
		s.log.Error().Err(err).Msg("failed again")
	}
}

// fewFiles is a limit of open files that is warned of below: each stream takes
// two, so that a busy day would reach it.
const fewFiles = 8192

// limits asks the system for what thousands of streams need.
func (s *server) limits() error {
	files, err := raiseFileLimit()
	s.files = files
	if files > 0 && files < edge.LeastFiles {
		return fmt.Errorf("cannot serve with %d open files: raise the limit to %d at least, and to thousands for streams (ulimit -n)", files, edge.LeastFiles)
	}
	if err != nil || files < fewFiles {
		s.log.Warn().Err(err).Uint64("files", files).Msg("few connections at once: raise the limit of open files (ulimit -n)")
	}
	if limit := limitMemory(); limit > 0 {
		s.log.Info().Str("limit", config.Size(limit).String()).Msg("memory limit taken from the control group")
	}
	return nil
}

// openAdmin opens the listener for operators. Its address by default may be another Kvasir's: who
// tries out a second one asked for no such listener, and goes without.
func (s *server) openAdmin() (err error) {
	addr := s.started.Server.Admin
	if addr == "" {
		return nil
	}
	s.admin, err = listener.Open(addr)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EADDRINUSE) && !s.current.Chosen("server.admin"):
		s.admin = nil
		s.proxy.Degrade("serving without metrics, health for operators and reloads by request: another process has " + addr + ", the address of server.admin by default; set another one by --admin, or --admin= for none")
		return nil
	}
	return fmt.Errorf("server.admin (--admin): %w", err)
}

func (s *server) watchFiles() {
	notes, err := fsnotify.NewWatcher()
	if err != nil {
		notes = nil
		s.log.Warn().Err(err).Stringer("every", filewatch.Poll).Msg("the system does not tell of changed files; looking at them instead")
	}
	s.watcher = newWatcher(notes, s.filesChanged)
	s.watcher.set(s.read)
}

// greet says what is served, and how to try it.
func (s *server) greet() {
	c := s.started
	url, curl := listener.URL(s.api, s.tls != nil)
	admin := ""
	if s.admin != nil {
		admin, _ = listener.URL(s.admin, false)
	}
	if len(c.Keys) == 0 && !config.IsLoopback(c.Server.Listen) {
		s.log.Warn().Str("listen", c.Server.Listen).Msg("keys is empty: everybody who reaches this address may ask")
	}
	s.log.Info().Str("config", s.layers.Name()).Str("version", s.version).Str("api", url+"/v1").Str("admin", admin).
		Int("workers", len(c.Workers)).Int("simulated", len(c.Simulate)).Int("sources", len(c.Discovery)).Int("found", s.foundWorkers()).Str("policy", c.Routing.Policy).Msg("serving")
	if len(c.Keys) > 0 {
		curl += `-H "Authorization: Bearer $OPENAI_API_KEY" `
	}
	s.log.Info().Msgf(`try it: curl %s%s/v1/chat/completions -H 'Content-Type: application/json' -d '{"model":"auto","messages":[{"role":"user","content":"Hello"}]}'`, curl, url)
	if s.admin != nil && s.admin.Addr().Network() != "unix" {
		s.log.Info().Msgf("watch it in a browser: %s", admin)
	}
}

// run waits until a signal says to stop.
func (s *server) run() error {
	s.notify.ready()
	select {
	case <-s.shutdown.stop:
		s.drain()
		return nil
	case err := <-s.failed:
		s.stop()
		return err
	}
}

// reloadAtSignals reloads at SIGHUP. It does not run where signals are waited
// for: the configuration may lie on a file system on which a read never ends.
func (s *server) reloadAtSignals() {
	defer s.reloads.Done()
	for {
		select {
		case <-s.shutdown.reload:
			_ = s.reload() // the error is in the log, a metric and /readyz
		case <-s.noReloads:
			return
		}
	}
}

// drain stops in good order; another signal to stop ends the waiting.
func (s *server) drain() {
	s.notify.stopping(s.shutdown.patience())
	d := s.shutdown.drain.Load()
	s.log.Info().Str("signal", s.shutdown.signal.String()).Stringer("delay", d.Delay).Stringer("timeout", d.Timeout).Msg("draining; a second signal stops at once")
	s.proxy.Drain(d.Delay, d.Timeout, s.shutdown.now)
	s.stop()
	s.log.Info().Msg("stopped")
}

// stop takes down whatever was started, and waits for all of it.
func (s *server) stop() {
	if s.watcher != nil {
		s.watcher.close()
	}
	if s.noReloads != nil {
		close(s.noReloads)
		s.reloads.Wait()
	}
	s.planning.close()
	if s.keda != nil {
		s.keda.Close()
	}
	if s.discovery != nil {
		s.discovery.Close()
	}
	if s.page != nil {
		s.page.Close()
	}
	if s.proxy != nil {
		if err := s.proxy.Close(); err != nil {
			s.log.Warn().Err(err).Msg("cannot close the proxy in good order")
		}
	}
	for _, ln := range []net.Listener{s.api, s.admin} {
		if ln != nil {
			_ = ln.Close() // unless it was served: then it is closed already
		}
	}
	s.serving.Wait()
	s.tracing.Close()
	s.peers.Close()
	s.storeWatch.close()
	closeMonitor(s.monitor)
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.log.Warn().Err(err).Msg("cannot close the cache in good order")
		}
	}
	if s.engines != nil {
		s.engines.Close()
	}
}

// settings is what the proxy is told of a generation. The engines that were
// started are workers, too, even if the generation says otherwise: simulate
// waits for a restart.
func (s *server) settings(g *config.Generation, m *gpu.Monitor) (*proxy.Settings, error) {
	settings := wiring.Settings(g)
	for _, w := range settings.Workers {
		for _, e := range s.engines.Workers {
			if w.Name == e.Name {
				return nil, fmt.Errorf("workers: %s is the name of a simulated engine that runs until the restart", wording.Quote(w.Name))
			}
		}
	}
	settings = s.engines.Among(settings)
	if settings.BodyMemory == 0 {
		settings.BodyMemory = bodyMemory(debug.SetMemoryLimit(-1), machineMemory(), int64(g.Config.Server.LeastBodyMemory()))
	}
	watchedBy(m, &settings.GPU)
	settings.Peers = s.peers
	if s.store != nil {
		var err error
		if settings.Cache, err = wiring.Cache(&g.Config.Cache, s.store); err != nil {
			return nil, err
		}
	}
	return settings, nil
}

// StopSignals end every command that runs until it is told to stop.
var StopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}
