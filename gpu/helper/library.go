//go:build linux && cgo

// Library: the driver's library, opened so that a missing function is never called.

package main

import (
	"fmt"
	"os"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// A library is libnvidia-ml.so.1.
//
// go-nvml resolves functions when they are first called, and the loader ends the process if it
// does not find one. So code that calls a function which an older driver may lack must call has
// first. This handle also keeps the library loaded when go-nvml closes it in Shutdown, so that
// resolved functions stay valid.
type library struct {
	nvml.Interface
	lookup func(symbol string) error // returns nil if the library has the function
	file   os.FileInfo               // the file when it was opened
	path   string
}

func openLibrary(path string) (*library, error) {
	file, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the driver's library: %w", err)
	}
	handle := dl.New(path, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	if err := handle.Open(); err != nil {
		return nil, fmt.Errorf("cannot open the driver's library: %w", err)
	}
	lib := &library{Interface: nvml.New(nvml.WithLibraryPath(path)), lookup: handle.Lookup, file: file, path: path}
	for _, symbol := range []string{
		"nvmlInit", "nvmlShutdown", "nvmlErrorString", "nvmlSystemGetDriverVersion", "nvmlDeviceGetCount",
		"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetPciInfo",
	} {
		if !lib.has(symbol) {
			_ = handle.Close()
			return nil, fmt.Errorf("cannot use %q: it has no function %s", path, symbol)
		}
	}
	return lib, nil
}

// has reports whether the library has a function, or a version of it that go-nvml calls instead.
func (l *library) has(symbol string) bool {
	if l.lookup(symbol) == nil {
		return true
	}
	return versioned[symbol] && (l.lookup(symbol+"_v2") == nil || l.lookup(symbol+"_v3") == nil)
}

var versioned = map[string]bool{
	"nvmlInit": true, "nvmlDeviceGetCount": true, "nvmlDeviceGetHandleByIndex": true, "nvmlDeviceGetPciInfo": true,
	"nvmlEventSetWait": true, "nvmlDeviceGetComputeRunningProcesses": true,
	"nvmlDeviceGetGraphicsRunningProcesses": true, "nvmlDeviceGetMPSComputeRunningProcesses": true,
}

// replaced reports whether the file is no longer the one that was opened, as after a driver
// update. Only a new process can load the new file.
func (l *library) replaced() bool {
	file, err := os.Stat(l.path)
	return err == nil && !os.SameFile(file, l.file)
}
