// Trouble: the meaning of NVML's errors, and what to do about them.

package gpu

import (
	"strings"

	"kvasir/gpu/snapshot"
)

// noVerdict are the errors of a poll that say nothing about the GPU: the next poll may succeed,
// or Kvasir lacks a permission. After one of them the GPU becomes stale when its last snapshot is
// too old; after any other error it is lost until a poll succeeds.
var noVerdict = map[string]bool{
	"TIMEOUT": true, "IN_USE": true, "MEMORY": true, "NO_DATA": true, "NOT_READY": true,
	"INSUFFICIENT_SIZE": true, "INSUFFICIENT_RESOURCES": true, "ARGUMENT_VERSION_MISMATCH": true,
	"NO_PERMISSION": true, "OPERATING_SYSTEM": true,
}

// advice is what to do about each error (nvmlReturn_t, nvml.h).
var advice = map[string]string{
	"UNINITIALIZED":           "the driver was unloaded; telemetry comes back with it",
	"NO_PERMISSION":           "let Kvasir's user open /dev/nvidiactl and /dev/nvidia*",
	"INSUFFICIENT_POWER":      "check the power cables of the GPU",
	"DRIVER_NOT_LOADED":       "load the driver with modprobe nvidia, or start the container with --gpus all",
	"IRQ_ISSUE":               "look for NVRM in dmesg and restart the host",
	"LIBRARY_NOT_FOUND":       "install the driver's library again",
	"FUNCTION_NOT_FOUND":      "the driver is too old for telemetry; install a newer one",
	"CORRUPTED_INFOROM":       "the memory of the board itself is damaged; have it replaced",
	"GPU_IS_LOST":             "it fell off the bus or cannot be reached; look for its Xid in dmesg, then restart the host",
	"GPU_NOT_FOUND":           "it is not there any more; look for its Xid in dmesg, then restart the host",
	"RESET_REQUIRED":          "reset it with nvidia-smi --gpu-reset, or restart the host",
	"OPERATING_SYSTEM":        "the system does not let Kvasir ask it; a container that lost its devices has to be started again",
	"LIB_RM_VERSION_MISMATCH": "the driver was upgraded while it ran; restart the host or load it again",
	"UNKNOWN":                 "in a container that lost its devices, start it again; else look for NVRM and Xid in dmesg",
}

// explain returns what happened and what to do.
func explain(t *snapshot.Trouble) string {
	text := "the driver says " + t.Code
	if t.Text != "" && !strings.EqualFold(t.Text, t.Code) {
		text += " (" + t.Text + ")"
	}
	if do := advice[t.Code]; do != "" {
		text += ": " + do
	}
	return text
}
