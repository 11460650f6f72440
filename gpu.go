// GPU: the telemetry of a Config, and the monitor that it asks for.
package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"kvasir/gpu"
	"kvasir/proxy"
)

// asks says whether the GPUs of this host are to be looked at.
func (c *gpuConfig) asks() bool { return c.Mode != "off" }

// watchesLike says whether one monitor serves both: all but how it looks is read anew each time.
func (c *gpuConfig) watchesLike(o *gpuConfig) bool {
	return c.asks() == o.asks() && c.Interval == o.Interval
}

// startMonitor begins to look at the GPUs of this host, in the place of another monitor if there is one; nil where
// nobody asks for it. A host without a driver is no trouble: it is said once.
func startMonitor(log zerolog.Logger, c *gpuConfig, after *gpu.Monitor) *gpu.Monitor {
	if !c.asks() {
		return nil
	}
	m := gpu.Start(gpu.Options{Interval: c.Interval, After: after, Notice: func(text string, err error) { tellGPU(log, text, err) }})
	if m.Off() {
		log.Info().Str("why", m.Fleet(time.Now()).Why).Msg("no GPU telemetry")
	}
	return m
}

// tellGPU logs what a monitor has to say: err is nil where all is well.
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

// watchedBy says where the proxy finds the GPUs that a monitor looks at.
func watchedBy(m *gpu.Monitor, s *proxy.GPU) {
	switch {
	case m == nil:
	case m.Off():
		s.Missing = m.Fleet(time.Now()).Why
	default:
		s.Fleet = m.Fleet
	}
}

// effects is what conditions of a GPU do to placement.
func (c *gpuConfig) effects() gpu.Effects {
	effect := func(name string) gpu.Effect {
		e, err := gpu.ParseEffect(name)
		if err != nil {
			return gpu.EffectOff // a value that is refused, and told: the key names those there are
		}
		return e
	}
	return gpu.Effects{
		Throttle: effect(c.Throttle), Neighbour: effect(c.Neighbour), Memory: effect(c.Memory), Errors: effect(c.Errors),
		Headroom: uint64(c.Headroom),
	}
}

// maxGPU is the highest NVML index that a configuration may name: no host has as many.
const maxGPU = 255

// gpus finds what is wrong with the GPUs that workers name.
func (v *validation) gpus(c *Config) {
	for i := range c.Workers {
		v.gpuList(fmt.Sprintf("workers[%d].gpus", i), c.Workers[i].GPUs)
	}
	for i := range c.Simulate {
		v.gpuList(fmt.Sprintf("simulate[%d].gpus", i), c.Simulate[i].GPUs)
	}
}

// gpuList wants NVML indices and UUIDs, each once. Several workers may name one
// GPU, and one worker several.
func (v *validation) gpuList(path string, gpus []string) {
	seen := map[string]string{}
	for i, name := range gpus {
		at := fmt.Sprintf("%s[%d]", path, i)
		if err := checkGPU(name); err != nil {
			v.add(err.Error(), at)
			continue
		}
		v.once(seen, strings.ToLower(name), at, quote(name)+" is named twice")
	}
}

// checkGPU wants a GPU's NVML index or its UUID, as nvidia-smi -L lists both.
func checkGPU(name string) error {
	if n, err := strconv.Atoi(name); err == nil && !zeroFirst(name) && name[0] != '+' {
		if n < 0 || n > maxGPU {
			return fmt.Errorf("an index is from 0 to %d, is %d", maxGPU, n)
		}
		return nil
	}
	if isUUID(name) {
		return nil
	}
	return fmt.Errorf("%s is neither an NVML index, such as 0, nor a UUID, such as GPU-8c4a2a54-91b7-4b0e-9f3d-3c2b6f6d1a20; nvidia-smi -L lists both", quote(name))
}

// isUUID says whether a name has the form of NVML's: GPU- or MIG- and a UUID.
// Old drivers write MIG-GPU-, a UUID and two numbers behind slashes.
func isUUID(name string) bool {
	prefix, rest, _ := strings.Cut(name, "-")
	prefix = strings.ToUpper(prefix)
	return (prefix == "GPU" || prefix == "MIG") && rest != "" && len(rest) <= 64 &&
		strings.Trim(rest, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-/") == ""
}
