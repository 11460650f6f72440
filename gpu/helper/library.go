//go:build linux && cgo

// Library: the driver's library, opened in a way in which a missing function is not called.

package main

import (
	"fmt"
	"os"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// A library is libnvidia-ml.so.1.
//
// go-nvml binds functions when they are first called, and the loader ends the process when it does
// not find one: so whoever calls a function that an older driver may lack asks has first. What is
// looked up here also keeps the library in place when go-nvml closes it in Shutdown: what was bound stays so.
type library struct {
	nvml.Interface
	lookup func(symbol string) error // nil for a function that it has
	file   os.FileInfo               // when it was opened
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

// has says whether there is such a function, or a version of it that go-nvml calls in its place.
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

// replaced says whether the file is another one than that which was opened, as after an update of
// the driver. Only a new process can open the new one.
func (l *library) replaced() bool {
	file, err := os.Stat(l.path)
	return err == nil && !os.SameFile(file, l.file)
}
