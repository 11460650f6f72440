// Snapshot: the result of one poll of one GPU, and the helper's other lines.

// Package snapshot is the protocol between the telemetry helper, which writes, and Kvasir, which
// reads: one line of JSON for each poll of each GPU.
//
//	{"hello":{"protocol":1,"driver":"570.86.15","gpus":2}}
//	{"gpu":{"index":0,"uuid":"GPU-...","memory_used_bytes":1073741824,...}}
//	{"trouble":{"gpu":1,"code":"GPU_IS_LOST","text":"..."}}
//
// It imports nothing else of Kvasir, because the helper program is embedded in Kvasir and cannot
// import a package that embeds it.
package snapshot

// A GPU is the result of one poll of one GPU. A pointer that is nil, and a nil slice, mean that the
// driver does not give the value: it is absent in JSON, never zero.
type GPU struct {
	// Index is NVML's index of the GPU, from 0.
	Index int `json:"index"`

	// UUID is the GPU's UUID, such as GPU-5c1d...; empty: unknown.
	UUID string `json:"uuid,omitempty"`

	// Name is the product name, such as NVIDIA H100 80GB HBM3; empty: unknown.
	Name string `json:"name,omitempty"`

	// PCI is the bus id, domain:bus:device.function, such as 00000000:07:00.0; empty: unknown.
	PCI string `json:"pci,omitempty"`

	// MemoryUsed is the memory in use, in bytes.
	MemoryUsed *uint64 `json:"memory_used_bytes,omitempty"`

	// MemoryTotal is all memory of the GPU, in bytes.
	MemoryTotal *uint64 `json:"memory_total_bytes,omitempty"`

	// MemoryFree is the free memory, in bytes: less than total - used, because the driver keeps
	// some for itself.
	MemoryFree *uint64 `json:"memory_free_bytes,omitempty"`

	// SMUtilization is the share of the last sample in which a kernel ran, in per cent.
	SMUtilization *float64 `json:"sm_utilization,omitempty"`

	// MemoryUtilization is the share of it in which memory was read or written, in per cent.
	MemoryUtilization *float64 `json:"memory_utilization,omitempty"`

	// Power is the power draw, in watts.
	Power *float64 `json:"power_watts,omitempty"`

	// PowerLimit is the power limit in force, in watts.
	PowerLimit *float64 `json:"power_limit_watts,omitempty"`

	// Temperature is the temperature of the chip, in degrees Celsius.
	Temperature *float64 `json:"temperature_celsius,omitempty"`

	// SMClock is the present clock of the SMs, in MHz.
	SMClock *float64 `json:"sm_clock_mhz,omitempty"`

	// SMClockMax is the highest clock of the SMs, in MHz.
	SMClockMax *float64 `json:"sm_clock_max_mhz,omitempty"`

	// MemoryClock is the present clock of the memory, in MHz.
	MemoryClock *float64 `json:"memory_clock_mhz,omitempty"`

	// MemoryClockMax is the highest clock of the memory, in MHz.
	MemoryClockMax *float64 `json:"memory_clock_max_mhz,omitempty"`

	// ThrottleReasons are the names, from the table Reasons, of what holds the clocks down; empty:
	// nothing does; nil: the driver does not say.
	ThrottleReasons []string `json:"throttle_reasons,omitzero"`

	// ECCErrors counts uncorrected ECC errors since the driver was loaded.
	ECCErrors *uint64 `json:"ecc_errors,omitempty"`

	// ECCCorrected counts corrected ECC errors since the driver was loaded.
	ECCCorrected *uint64 `json:"ecc_corrected_errors,omitempty"`

	// Xid is the number of the last Xid error since the helper began; 0: none.
	Xid *uint64 `json:"xid,omitempty"`

	// XidAt is the time of that error, in milliseconds since 1970; nil: none.
	XidAt *int64 `json:"xid_at_ms,omitempty"`

	// Xids has the last error of each number, the newest at the end, because others may follow a
	// critical one.
	Xids []Xid `json:"xids,omitempty"`

	// Recovery is the recovery action that the driver requests: none, gpu_reset, node_reboot,
	// drain_p2p, drain_and_reset, recover_imex_domain, bus_reset, system_reboot or unknown.
	Recovery *string `json:"recovery_action,omitempty"`

	// NVLinkReceived is what all NVLinks together receive, in bytes per second.
	NVLinkReceived *float64 `json:"nvlink_rx_bytes_per_second,omitempty"`

	// NVLinkSent is what all NVLinks together send, in bytes per second.
	NVLinkSent *float64 `json:"nvlink_tx_bytes_per_second,omitempty"`

	// PCIeReceived is what the GPU receives over PCIe, in bytes per second.
	PCIeReceived *float64 `json:"pcie_rx_bytes_per_second,omitempty"`

	// PCIeSent is what the GPU sends over PCIe, in bytes per second.
	PCIeSent *float64 `json:"pcie_tx_bytes_per_second,omitempty"`

	// MIG are the GPU's MIG devices; nil: MIG is off or not available.
	MIG []Instance `json:"mig,omitzero"`

	// Processes are the processes with a context on the GPU; nil: the driver does not say.
	Processes []Process `json:"processes,omitzero"`
}

// An Instance is one MIG device.
type Instance struct {
	GPUInstance     int     `json:"gpu_instance"`     // id of the GPU instance
	ComputeInstance int     `json:"compute_instance"` // id of the compute instance in it
	UUID            string  `json:"uuid,omitempty"`
	Name            string  `json:"name,omitempty"`
	MemoryUsed      *uint64 `json:"memory_used_bytes,omitempty"`
	MemoryTotal     *uint64 `json:"memory_total_bytes,omitempty"`
}

// A Process has a context on the GPU.
type Process struct {
	PID           int      `json:"pid"`
	Memory        *uint64  `json:"memory_bytes,omitempty"`   // that it has allocated
	SMUtilization *float64 `json:"sm_utilization,omitempty"` // its share of the SMs, in per cent
}

// An Xid is an error that the driver reports when it happens.
type Xid struct {
	Number uint64 `json:"xid"`
	At     int64  `json:"at_ms"` // time of the error, in milliseconds since 1970
}

// Protocol is the version of the lines.
const Protocol = 1

// A Line is one line of the helper. Exactly one of its fields is set.
type Line struct {
	Hello   *Hello   `json:"hello,omitempty"`
	GPU     *GPU     `json:"gpu,omitempty"`
	Trouble *Trouble `json:"trouble,omitempty"`
}

// A Hello is the first line. It comes again when the driver was lost and is back.
type Hello struct {
	Protocol int    `json:"protocol"` // Protocol of the helper's build
	Driver   string `json:"driver"`   // its version, such as 570.86.15
	GPUs     int    `json:"gpus"`     // how many the driver knows
}

// A Trouble is a poll that failed.
type Trouble struct {
	GPU  int    `json:"gpu"`  // index; -1: the driver as a whole
	Code string `json:"code"` // NVML's name of the error without NVML_ERROR_, such as GPU_IS_LOST
	Text string `json:"text"`
}
