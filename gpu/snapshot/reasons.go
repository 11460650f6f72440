// Reasons: NVML's bits for why clocks are held down.

package snapshot

// A Reason is one bit of nvmlDeviceGetCurrentClocksEventReasons (nvml.h).
type Reason struct {
	Bit  uint64
	Name string
}

// Reasons are the ones that snapshots report.
var Reasons = []Reason{
	{0x1, "gpu_idle"},
	{0x2, "applications_clocks_setting"},
	{0x4, "sw_power_cap"},
	{0x8, "hw_slowdown"},
	{0x10, "sync_boost"},
	{0x20, "sw_thermal_slowdown"},
	{0x40, "hw_thermal_slowdown"},
	{0x80, "hw_power_brake_slowdown"},
	{0x100, "display_clock_setting"},
}
