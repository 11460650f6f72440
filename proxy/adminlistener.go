// The admin listener: its connections, and what of the proxy its routes read.

package proxy

import (
	"errors"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"kvasir/cache"
	"kvasir/classify"
	"kvasir/edge"
	"kvasir/gpu"
	"kvasir/openai"
	"kvasir/proxy/respond"
)

// maxAdminBody is how long a body may be on the admin listener, in bytes: a text for
// the classifiers.
const maxAdminBody = 4 << 20

// ServeAdmin has handler answer the requests on ln until Close, on connections that
// clients of the API cannot use up, with bodies counted in the same budget.
func (p *Proxy) ServeAdmin(ln net.Listener, handler fasthttp.RequestHandler) error {
	return p.admin.Serve(&fasthttp.Server{
		Handler: p.receiving(handler), ErrorHandler: unreadableAdmin, HeaderReceived: adminHeadReceived, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		Concurrency:           p.descriptors.Admin(),
		NoDefaultServerHeader: true, SecureErrorLogMessage: true, Logger: edge.Quiet(p.metrics.serverErrors.Inc), CloseOnShutdown: true,
	}, &edge.Listener{Listener: ln})
}

// receiving reads the body before next sees the request, and keeps a panic to its
// request: one on the admin listener once ended the process.
func (p *Proxy) receiving(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		defer func() {
			if fault := recover(); fault != nil {
				p.bugs.answer(ctx, fault)
			}
		}()
		defer edge.Forget(ctx)
		if err := edge.Receive(ctx, &p.bodies, maxAdminBody, false); err != nil {
			unreadableAdmin(ctx, err)
			return
		}
		next(ctx)
	}
}

// adminHeadReceived leaves the body to edge.Receive; the clock of the head runs on.
func adminHeadReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	edge.LeaveBody(h)
	return fasthttp.RequestConfig{}
}

// unreadableAdmin answers a request that is no valid HTTP, or too large.
func unreadableAdmin(ctx *fasthttp.RequestCtx, err error) {
	refusal := openai.Invalid("", "The request is not valid HTTP/1.1")
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		refusal = edge.TooLarge(maxAdminBody, "")
	case errors.Is(err, edge.ErrNoRoom):
		refusal = edge.NoRoom()
	}
	respond.Error(ctx, refusal)
	edge.CloseBehind(ctx)
}

// Metrics gathers what /metrics says.
func (p *Proxy) Metrics() prometheus.Gatherer { return p.metrics.registry }

// AdminHosts are server.admin_hosts as new requests are served under them.
func (p *Proxy) AdminHosts() []string { return p.state.Load().settings.AdminHosts }

// Cache is the cache that new requests are answered from; nil where it is off.
func (p *Proxy) Cache() *cache.Cache { return p.state.Load().settings.Cache }

// Fleet is every GPU of this host with its workers, as of now.
func (p *Proxy) Fleet(now time.Time) *gpu.Fleet { return p.hardware.Fleet(now) }

// Judging gives a classifier of texts that no request sends, with every guard on and
// none that ends the judging; the probability from which it takes a text for an
// attack; and the model that MoM and auto stand for.
func (p *Proxy) Judging() (c *classify.Classifier, attack float64, model string) {
	s := p.state.Load()
	return s.deciding, s.settings.Classify.Jailbreak.Threshold, s.defaultModel()
}
