// Metrics of GPUs, in DCGM exporter's names where it has one.

package hardware

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvasir/gpu"
	"kvasir/gpu/snapshot"
)

// A hardwareCollector reads what was last seen of GPUs when it is asked for.
type hardwareCollector struct{ watch *Watch }

// DCGM exporter's labels and those that we need ourselves.
var (
	dcgmLabels = []string{"gpu", "UUID", "pci_bus_id", "device", "modelName", "hostname"}
	migLabels  = append(dcgmLabels[:len(dcgmLabels):len(dcgmLabels)], "GPU_I_PROFILE", "GPU_I_ID")
)

func gpuDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"gpu", "UUID"}, labels...), nil)
}

var (
	gpuTelemetry  = prometheus.NewDesc("kvasir_gpu_telemetry", "1 for the state of GPU telemetry as a whole.", []string{"state"}, nil)
	gpuState      = gpuDesc("kvasir_gpu_state", "1 for the state of what is known of a GPU.", "state")
	gpuAge        = gpuDesc("kvasir_gpu_age_seconds", "Since the GPU was last polled with success.")
	gpuThrottled  = gpuDesc("kvasir_gpu_throttle_reason", "1 for each reason that holds the GPU's clocks down.", "reason")
	gpuRecovery   = gpuDesc("kvasir_gpu_recovery_action", "1 for what the driver asks to be done with the GPU.", "action")
	gpuServes     = gpuDesc("kvasir_gpu_worker", "1 for each worker that runs on the GPU.", "worker")
	hardwareSlow  = prometheus.NewDesc("kvasir_worker_hardware_slow", "How many times slower than usual the worker is taken to be because of its GPUs; 1: not slower.", []string{"worker"}, nil)
	hardwareAside = prometheus.NewDesc("kvasir_worker_hardware_aside", "1 while the worker is asked after all others for its GPUs.", []string{"worker"}, nil)
)

// Describe and Collect are prometheus.Collector.
func (hardwareCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{gpuTelemetry, gpuState, gpuAge, gpuThrottled, gpuRecovery, gpuServes, hardwareSlow, hardwareAside} {
		out <- d
	}
}

func (c hardwareCollector) Collect(out chan<- prometheus.Metric) {
	f := c.watch.Fleet(time.Now())
	if f.State == gpu.Off {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(gpuTelemetry, 1, string(f.State))
	for i := range f.GPUs {
		g := &f.GPUs[i]
		index := strconv.Itoa(g.Index)
		gauge(gpuState, 1, index, g.UUID, string(g.State))
		if !g.At.IsZero() {
			gauge(gpuAge, float64(g.Age)/1e3, index, g.UUID)
		}
		for _, worker := range g.Workers {
			gauge(gpuServes, 1, index, g.UUID, worker)
		}
		if g.State != gpu.OK {
			continue
		}
		for _, reason := range g.ThrottleReasons {
			gauge(gpuThrottled, 1, index, g.UUID, reason)
		}
		if g.Recovery != nil {
			gauge(gpuRecovery, 1, index, g.UUID, *g.Recovery)
		}
	}
	seen := c.watch.shown.Load()
	if seen == nil {
		return
	}
	for i := range seen.workers {
		w := &seen.workers[i]
		if w.gpus == 0 {
			continue
		}
		aside := 0.0
		if w.Aside {
			aside = 1
		}
		gauge(hardwareSlow, w.Slow, w.name)
		gauge(hardwareAside, aside, w.name)
	}
}

// A dcgmCollector says of GPUs what DCGM exporter does, in its names, labels and units. It describes nothing
// beforehand: a MIG device has labels besides those of its GPU.
type dcgmCollector struct{ watch *Watch }

// A dcgmField is one metric: its value in a snapshot; nil: the driver gives none.
type dcgmField struct {
	name, help string
	value      func(*snapshot.GPU) *float64
	counts     bool // only ever goes up
}

func (f *dcgmField) send(out chan<- prometheus.Metric, g *snapshot.GPU, names, labels []string) {
	v := f.value(g)
	if v == nil {
		return
	}
	kind := prometheus.GaugeValue
	if f.counts {
		// No counter: its name would get _total in OpenMetrics, and dashboards of DCGM exporter
		// would not find it.
		kind = prometheus.UntypedValue
	}
	out <- prometheus.MustNewConstMetric(prometheus.NewDesc(f.name, f.help, names, nil), kind, *v, labels...)
}

// dcgmFields are named and measured as in DCGM exporter's default-counters.csv and dcgm_fields.h.
var dcgmFields = []dcgmField{
	{"DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", func(g *snapshot.GPU) *float64 { return g.SMClock }, false},
	{"DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", func(g *snapshot.GPU) *float64 { return g.MemoryClock }, false},
	{"DCGM_FI_DEV_MAX_SM_CLOCK", "Maximum SM clock frequency (in MHz).", func(g *snapshot.GPU) *float64 { return g.SMClockMax }, false},
	{"DCGM_FI_DEV_MAX_MEM_CLOCK", "Maximum memory clock frequency (in MHz).", func(g *snapshot.GPU) *float64 { return g.MemoryClockMax }, false},
	{"DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", func(g *snapshot.GPU) *float64 { return g.Temperature }, false},
	{"DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", func(g *snapshot.GPU) *float64 { return g.Power }, false},
	{"DCGM_FI_DEV_POWER_MGMT_LIMIT", "Power limit (in W).", func(g *snapshot.GPU) *float64 { return g.PowerLimit }, false},
	{"DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", func(g *snapshot.GPU) *float64 { return g.SMUtilization }, false},
	{"DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", func(g *snapshot.GPU) *float64 { return g.MemoryUtilization }, false},
	{"DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", memoryFree, false},
	{"DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", func(g *snapshot.GPU) *float64 { return mebibytes(g.MemoryUsed) }, false},
	{"DCGM_FI_DEV_FB_TOTAL", "Framebuffer memory (in MiB).", func(g *snapshot.GPU) *float64 { return mebibytes(g.MemoryTotal) }, false},
	{"DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error encountered.", func(g *snapshot.GPU) *float64 { return number(g.Xid) }, false},
	{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "Uncorrected ECC errors since the driver was loaded.", func(g *snapshot.GPU) *float64 { return number(g.ECCErrors) }, true},
	{"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "Corrected ECC errors since the driver was loaded.", func(g *snapshot.GPU) *float64 { return number(g.ECCCorrected) }, true},
	{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "Reasons that hold the clocks down, as NVML's bits.", throttleBits, false},
	{"DCGM_FI_PROF_PCIE_RX_BYTES", "Bytes received over PCIe per second.", func(g *snapshot.GPU) *float64 { return g.PCIeReceived }, false},
	{"DCGM_FI_PROF_PCIE_TX_BYTES", "Bytes sent over PCIe per second.", func(g *snapshot.GPU) *float64 { return g.PCIeSent }, false},
	{"DCGM_FI_PROF_NVLINK_RX_BYTES", "Bytes received over NVLink per second.", func(g *snapshot.GPU) *float64 { return g.NVLinkReceived }, false},
	{"DCGM_FI_PROF_NVLINK_TX_BYTES", "Bytes sent over NVLink per second.", func(g *snapshot.GPU) *float64 { return g.NVLinkSent }, false},
}

// Describe and Collect are prometheus.Collector.
func (dcgmCollector) Describe(chan<- *prometheus.Desc) {}

func (c dcgmCollector) Collect(out chan<- prometheus.Metric) {
	f := c.watch.Fleet(time.Now())
	for i := range f.GPUs {
		g := &f.GPUs[i]
		if g.State != gpu.OK {
			continue // what was seen says nothing of now
		}
		labels := []string{strconv.Itoa(g.Index), g.UUID, g.PCI, "nvidia" + strconv.Itoa(g.Index), g.Name, hostname()}
		for n := range dcgmFields {
			dcgmFields[n].send(out, &g.GPU, dcgmLabels, labels)
		}
		collectInstances(out, g.MIG, labels)
	}
}

// collectInstances is what is known of MIG devices: their memory, which is the GPU instance's. Of several compute
// instances of one the first stands for it: DCGM exporter's labels do not tell them apart, and one series that is
// there twice would take all of /metrics away.
func collectInstances(out chan<- prometheus.Metric, all []snapshot.Instance, labels []string) {
	for i := range all {
		same := func(m snapshot.Instance) bool { return m.GPUInstance == all[i].GPUInstance }
		if !slices.ContainsFunc(all[:i], same) {
			collectInstance(out, &all[i], labels)
		}
	}
}

func collectInstance(out chan<- prometheus.Metric, m *snapshot.Instance, labels []string) {
	labels = append(labels[:len(labels):len(labels)], migProfile(m.Name), strconv.Itoa(m.GPUInstance))
	of := snapshot.GPU{MemoryUsed: m.MemoryUsed, MemoryTotal: m.MemoryTotal}
	for n := range dcgmFields {
		dcgmFields[n].send(out, &of, migLabels, labels)
	}
}

// migProfile is the profile of a GPU instance by a MIG device's name: 2g.20gb of "NVIDIA H100 80GB HBM3 MIG 2g.20gb",
// and of "... MIG 1c.2g.20gb", one of its compute instances.
func migProfile(name string) string {
	if _, profile, found := strings.Cut(name, " MIG "); found {
		name = profile
	}
	if part, profile, found := strings.Cut(name, "c."); found && strings.Trim(part, "0123456789") == "" {
		name = profile
	}
	return name
}

var hostname = sync.OnceValue(func() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
})

func number(n *uint64) *float64 {
	if n == nil {
		return nil
	}
	v := float64(*n)
	return &v
}

func mebibytes(n *uint64) *float64 {
	v := number(n)
	if v != nil {
		*v /= 1 << 20
	}
	return v
}

// memoryFree is what the driver calls so; of a MIG device it gives only the rest.
func memoryFree(g *snapshot.GPU) *float64 {
	if g.MemoryFree != nil {
		return mebibytes(g.MemoryFree)
	}
	if g.MemoryUsed == nil || g.MemoryTotal == nil || *g.MemoryUsed > *g.MemoryTotal {
		return nil
	}
	left := *g.MemoryTotal - *g.MemoryUsed
	return mebibytes(&left)
}

// throttleBits are the reasons as NVML has them.
func throttleBits(g *snapshot.GPU) *float64 {
	if g.ThrottleReasons == nil {
		return nil
	}
	var bits uint64
	for _, name := range g.ThrottleReasons {
		for _, r := range snapshot.Reasons {
			if r.Name == name {
				bits |= r.Bit
			}
		}
	}
	return number(&bits)
}
