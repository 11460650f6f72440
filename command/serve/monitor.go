// Monitor: the telemetry of this host's GPUs, as the configuration asks for it.

package serve

import (
	"time"

	"github.com/rs/zerolog"

	"kvasir/config"
	"kvasir/gpu"
	"kvasir/proxy"
)

// asks says whether the GPUs of this host are to be looked at.
func asks(c *config.GPU) bool { return c.Mode != "off" }

// watchAlike says whether one monitor can serve both configurations: it is only
// told whether to look and how often; the other keys of gpu are settings of the proxy.
func watchAlike(c, o *config.GPU) bool {
	return asks(c) == asks(o) && c.Interval == o.Interval
}

// startMonitor begins to look at the GPUs of this host; nil where the
// configuration does not ask for it. after is the monitor that it takes the
// place of, or nil. A host without a driver is no error: it is logged once.
func startMonitor(log zerolog.Logger, c *config.GPU, after *gpu.Monitor) *gpu.Monitor {
	if !asks(c) {
		return nil
	}
	m := gpu.Start(gpu.Options{Interval: c.Interval, After: after, Notice: func(text string, err error) { tellGPU(log, text, err) }})
	if m.Off() {
		log.Info().Str("why", m.Fleet(time.Now()).Why).Msg("no GPU telemetry")
	}
	return m
}

// tellGPU logs a notice of a monitor: err is nil where all is well.
func tellGPU(log zerolog.Logger, text string, err error) {
	if err != nil {
		log.Warn().Str("problem", err.Error()).Msg(text)
		return
	}
	log.Info().Msg(text)
}

func closeMonitor(m *gpu.Monitor) {
	if m != nil {
		m.Close()
	}
}

// watchedBy tells the proxy where it finds what a monitor sees.
func watchedBy(m *gpu.Monitor, s *proxy.GPU) {
	switch {
	case m == nil:
	case m.Off():
		s.Missing = m.Fleet(time.Now()).Why
	default:
		s.Fleet = m.Fleet
	}
}
