// Snapshot: what one poll of one GPU found.

// Package snapshot is what the telemetry helper says and Kvasir reads: one line
// of JSON for each poll of each GPU.
//
//	{"hello":{"protocol":1,"driver":"570.86.15","gpus":2}}
//	{"gpu":{"index":0,"uuid":"GPU-...","memory_used_bytes":1073741824,...}}
//	{"trouble":{"gpu":1,"code":"GPU_IS_LOST","text":"..."}}
//
// It stands alone: the helper program is embedded in Kvasir and can import
// nothing that embeds it.
package snapshot

// A GPU is one poll. A field that the driver does not give is nil and absent in
// JSON, never zero. Utilisation is in per cent.
type GPU struct {
	Index int    `json:"index"`
	UUID  string `json:"uuid,omitempty"`
	Name  string `json:"name,omitempty"`
	PCI   string `json:"pci,omitempty"` // domain:bus:device.function, such as 00000000:07:00.0

	MemoryUsed  *uint64 `json:"memory_used_bytes,omitempty"`
	MemoryTotal *uint64 `json:"memory_total_bytes,omitempty"`
	MemoryFree  *uint64 `json:"memory_free_bytes,omitempty"` // less than total - used: the driver keeps some for itself

	SMUtilization     *float64 `json:"sm_utilization,omitempty"`     // share of the last sample in which a kernel ran
	MemoryUtilization *float64 `json:"memory_utilization,omitempty"` // in which memory was read or written

	Power       *float64 `json:"power_watts,omitempty"`
	PowerLimit  *float64 `json:"power_limit_watts,omitempty"`
	Temperature *float64 `json:"temperature_celsius,omitempty"`

	SMClock        *float64 `json:"sm_clock_mhz,omitempty"`
	SMClockMax     *float64 `json:"sm_clock_max_mhz,omitempty"`
	MemoryClock    *float64 `json:"memory_clock_mhz,omitempty"`
	MemoryClockMax *float64 `json:"memory_clock_max_mhz,omitempty"`

	// ThrottleReasons are the names of what holds the clocks down, of the table
	// Reasons; empty: nothing does, nil: the driver does not say.
	ThrottleReasons []string `json:"throttle_reasons,omitzero"`

	ECCErrors    *uint64 `json:"ecc_errors,omitempty"`           // uncorrected, since the driver was loaded
	ECCCorrected *uint64 `json:"ecc_corrected_errors,omitempty"` // corrected, since then
	Xid          *uint64 `json:"xid,omitempty"`                  // the last one since the helper began; 0: none
	XidAt        *int64  `json:"xid_at_ms,omitempty"`            // when, in milliseconds since 1970; nil: none
	Xids         []Xid   `json:"xids,omitempty"`                 // the last one of each number, the newest at the end: a grave one draws others after it
	Recovery     *string `json:"recovery_action,omitempty"`      // what the driver asks for: none, gpu_reset, node_reboot, drain_p2p, drain_and_reset, recover_imex_domain, bus_reset, system_reboot, unknown

	NVLinkReceived *float64 `json:"nvlink_rx_bytes_per_second,omitempty"`
	NVLinkSent     *float64 `json:"nvlink_tx_bytes_per_second,omitempty"`
	PCIeReceived   *float64 `json:"pcie_rx_bytes_per_second,omitempty"`
	PCIeSent       *float64 `json:"pcie_tx_bytes_per_second,omitempty"`

	MIG       []Instance `json:"mig,omitzero"`       // nil: MIG is off or not to be had
	Processes []Process  `json:"processes,omitzero"` // nil: the driver does not say
}

// An Instance is one MIG device.
type Instance struct {
	GPUInstance     int     `json:"gpu_instance"`
	ComputeInstance int     `json:"compute_instance"`
	UUID            string  `json:"uuid,omitempty"`
	Name            string  `json:"name,omitempty"`
	MemoryUsed      *uint64 `json:"memory_used_bytes,omitempty"`
	MemoryTotal     *uint64 `json:"memory_total_bytes,omitempty"`
}

// A Process has a context on the GPU.
type Process struct {
	PID           int      `json:"pid"`
	Memory        *uint64  `json:"memory_bytes,omitempty"`
	SMUtilization *float64 `json:"sm_utilization,omitempty"` // its own share
}

// An Xid is an error that the driver tells when it happens.
type Xid struct {
	Number uint64 `json:"xid"`
	At     int64  `json:"at_ms"` // in milliseconds since 1970
}

// Protocol is the version of the lines.
const Protocol = 1

// A Line is one line of the helper: one of its fields is set.
type Line struct {
	Hello   *Hello   `json:"hello,omitempty"`
	GPU     *GPU     `json:"gpu,omitempty"`
	Trouble *Trouble `json:"trouble,omitempty"`
}

// A Hello is the first line, and comes again when the driver was lost and is back.
type Hello struct {
	Protocol int    `json:"protocol"`
	Driver   string `json:"driver"`
	GPUs     int    `json:"gpus"`
}

// A Trouble is a poll that failed.
type Trouble struct {
	GPU  int    `json:"gpu"`  // index; -1: the driver as a whole
	Code string `json:"code"` // NVML's name of the error without NVML_ERROR_, such as GPU_IS_LOST
	Text string `json:"text"`
}
