// Health: what /readyz says of the proxy, and how reloads of the configuration went.

package proxy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"kvasir/kvroute"
	"kvasir/proxy/health"
)

// ready tells everybody whether requests should be sent here, but what is wrong only
// to those who show a key.
func (p *Proxy) ready(ctx *fasthttp.RequestCtx) {
	r := p.Readiness()
	keys := p.state.Load().keys
	r.Answer(ctx, keys.required() && keys.stranger(ctx) == nil)
}

// Readiness says whether requests should be sent here now, and what is not as it
// should be.
func (p *Proxy) Readiness() health.Readiness {
	s := p.state.Load()
	r := health.Readiness{Status: "ready", Code: fasthttp.StatusOK, All: len(s.backends), Models: s.classifier.Models()}
	now := time.Now()
	why, up, answering := s.workerReasons(now)
	why = append(why, p.hardware.Reasons(now)...)
	slices.Sort(why)
	r.Up = up
	r.Reasons = append(p.reasons.List(), why...)
	r.Reasons = append(r.Reasons, s.settings.sourceReasons()...)
	r.Reasons = append(r.Reasons, s.settings.peerReasons()...)
	unserved, noStandard := s.unservedReasons()
	r.Reasons = append(r.Reasons, unserved...)
	if s.noneFound() {
		r.Reasons = append(r.Reasons, "discovery: no source has found a worker")
	}
	r.Reasons = append(r.Reasons, p.descriptors.Reasons(now)...)
	if c := s.settings.Cache; c != nil {
		if problem := c.Stats().Problem; problem != "" {
			r.Reasons = append(r.Reasons, "the cache: "+problem)
		}
	}
	switch {
	case p.draining.Load():
		r.Status, r.Code = "shutting down", fasthttp.StatusServiceUnavailable
	case answering == 0:
		r.Status, r.Code = "no worker is up", fasthttp.StatusServiceUnavailable
	case noStandard:
		r.Status, r.Code = "the default model is not served", fasthttp.StatusServiceUnavailable
	case len(r.Reasons) > 0:
		r.Status = "degraded"
	}
	return r
}

// workerReasons names the workers that are not up, or whose events are not heard as
// they should be, and counts those that are up, and of these those that can answer clients.
func (s *state) workerReasons(now time.Time) (why []string, up, answering int) {
	for _, b := range s.backends {
		st := b.Status(now)
		if !st.State.TakesRequests() {
			why = append(why, fmt.Sprintf("worker %q%s is %s: %s", b.Name(), foundBy(b.Source()), st.State, st.Why))
			continue
		}
		why = append(why, s.placeReasons(b)...)
		if few := b.ListsTooMany(); few != "" {
			why = append(why, few)
		}
		up++
		if b.Role() != kvroute.Prefill { // which answers nobody
			answering++
		}
		why = append(why, b.EventReasons(now)...)
	}
	return why, up, answering
}

// reloadMetrics are what is counted of reloads.
type reloadMetrics struct {
	taken *prometheus.CounterVec // or not, by result
	good  prometheus.Gauge
	at    prometheus.Gauge
}

// newReloadMetrics takes the start for a reload that went well.
func newReloadMetrics(f making) reloadMetrics {
	m := reloadMetrics{
		taken: f.counters("kvasir_config_reloads_total", "Reloads of the configuration.", "result"),
		good:  f.gauge("kvasir_config_last_reload_successful", "1 when the last reload was taken."),
		at:    f.gauge("kvasir_config_last_reload_success_timestamp_seconds", "When a configuration was last taken."),
	}
	m.good.Set(1)
	m.at.Set(float64(time.Now().Unix()))
	return m
}

// ReloadFailed notes that a configuration was not taken.
func (p *Proxy) ReloadFailed(err error) {
	p.metrics.reload.taken.WithLabelValues("failed").Inc()
	p.metrics.reload.good.Set(0)
	p.reasons.Set("reload", "the last reload was not taken: "+err.Error())
	p.log.Error().Str("problem", err.Error()).Msg("configuration not taken; the old one stays")
}

// ReloadDone notes that one was taken. The keys in restart have changed and wait for a
// restart.
func (p *Proxy) ReloadDone(restart []string) {
	p.metrics.reload.taken.WithLabelValues("taken").Inc()
	p.metrics.reload.good.Set(1)
	p.metrics.reload.at.Set(float64(time.Now().Unix()))
	p.reasons.Set("reload", "")
	e := p.log.Info()
	if len(restart) > 0 {
		p.reasons.Set("restart", "these keys changed and need a restart: "+strings.Join(restart, ", "))
		e = p.log.Warn().Strs("need_restart", restart)
	} else {
		p.reasons.Set("restart", "")
	}
	e.Msg("configuration reloaded")
}

// SetReason makes text a reason of /readyz under a key, in place of the one before; "" takes it back.
func (p *Proxy) SetReason(key, text string) { p.reasons.Set(key, text) }

// Degrade notes a standing reason why the proxy is less than it should be.
func (p *Proxy) Degrade(reason string) {
	p.reasons.Set(reason, reason)
	p.log.Warn().Msg(reason)
}
