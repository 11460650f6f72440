//go:build linux && cgo

// Codes: NVML's return codes, and what each means for a poll.

package main

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// A verdict is the meaning of a return code.
type verdict int

const (
	given       verdict = iota // the value was returned
	unsupported                // not supported by this GPU or this driver
	passing                    // failed this time only
	gpuLost                    // this GPU cannot be polled
	driverLost                 // the library must be initialised again
)

func judge(ret nvml.Return) verdict {
	switch ret {
	case nvml.SUCCESS:
		return given
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_NO_PERMISSION,
		nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_DEPRECATED, nvml.ERROR_INVALID_ARGUMENT:
		return unsupported
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED, nvml.ERROR_OPERATING_SYSTEM:
		return gpuLost
	case nvml.ERROR_UNINITIALIZED, nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return driverLost
	}
	return passing
}

// code returns the name of a return code in nvml.h, without NVML_ERROR_.
func code(ret nvml.Return) string {
	if name, ok := codes[ret]; ok {
		return name
	}
	return fmt.Sprint("CODE_", int(ret))
}

var codes = map[nvml.Return]string{
	nvml.SUCCESS:                         "SUCCESS",
	nvml.ERROR_UNINITIALIZED:             "UNINITIALIZED",
	nvml.ERROR_INVALID_ARGUMENT:          "INVALID_ARGUMENT",
	nvml.ERROR_NOT_SUPPORTED:             "NOT_SUPPORTED",
	nvml.ERROR_NO_PERMISSION:             "NO_PERMISSION",
	nvml.ERROR_NOT_FOUND:                 "NOT_FOUND",
	nvml.ERROR_INSUFFICIENT_SIZE:         "INSUFFICIENT_SIZE",
	nvml.ERROR_INSUFFICIENT_POWER:        "INSUFFICIENT_POWER",
	nvml.ERROR_DRIVER_NOT_LOADED:         "DRIVER_NOT_LOADED",
	nvml.ERROR_TIMEOUT:                   "TIMEOUT",
	nvml.ERROR_IRQ_ISSUE:                 "IRQ_ISSUE",
	nvml.ERROR_LIBRARY_NOT_FOUND:         "LIBRARY_NOT_FOUND",
	nvml.ERROR_FUNCTION_NOT_FOUND:        "FUNCTION_NOT_FOUND",
	nvml.ERROR_CORRUPTED_INFOROM:         "CORRUPTED_INFOROM",
	nvml.ERROR_GPU_IS_LOST:               "GPU_IS_LOST",
	nvml.ERROR_RESET_REQUIRED:            "RESET_REQUIRED",
	nvml.ERROR_OPERATING_SYSTEM:          "OPERATING_SYSTEM",
	nvml.ERROR_LIB_RM_VERSION_MISMATCH:   "LIB_RM_VERSION_MISMATCH",
	nvml.ERROR_IN_USE:                    "IN_USE",
	nvml.ERROR_MEMORY:                    "MEMORY",
	nvml.ERROR_NO_DATA:                   "NO_DATA",
	nvml.ERROR_INSUFFICIENT_RESOURCES:    "INSUFFICIENT_RESOURCES",
	nvml.ERROR_ARGUMENT_VERSION_MISMATCH: "ARGUMENT_VERSION_MISMATCH",
	nvml.ERROR_DEPRECATED:                "DEPRECATED",
	nvml.ERROR_NOT_READY:                 "NOT_READY",
	nvml.ERROR_GPU_NOT_FOUND:             "GPU_NOT_FOUND",
	nvml.ERROR_INVALID_STATE:             "INVALID_STATE",
	nvml.ERROR_UNKNOWN:                   "UNKNOWN",
}
