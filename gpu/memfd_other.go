// Memfd elsewhere: only Linux has NVIDIA drivers that the helper knows.

//go:build !linux

package gpu

import (
	"errors"
	"io"
	"os"
	"os/exec"
)

func memfd(io.Reader) (*os.File, error) { return nil, errors.ErrUnsupported }

func runs(*exec.Cmd, *os.File) {}

func refused(err error) error { return err }
