// Names that somebody gives the models and GPUs of a worker, before anything is asked of it.

package upstream

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kvasir/wording"
)

// CheckModel wants a name that a model can have.
func CheckModel(name string) error {
	switch {
	case name == "":
		return errors.New("is missing")
	case len(name) > 256 || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("must be at most 256 characters, none of them a control character")
	case IsChosen(name):
		return fmt.Errorf("%s is what clients ask for when Kvasir shall choose; give the model another name", wording.Quote(name))
	}
	return nil
}

// IsChosen says whether the name is no model's: who asks for it lets Kvasir choose.
func IsChosen(name string) bool {
	return strings.EqualFold(name, "mom") || strings.EqualFold(name, "auto")
}

// maxGPU is the highest NVML index that a GPU may be named by: no host has as many.
const maxGPU = 255

// CheckGPU wants a GPU's NVML index or its UUID, as nvidia-smi -L lists both.
func CheckGPU(name string) error {
	if n, err := strconv.Atoi(name); err == nil && strconv.Itoa(n) == name {
		if n < 0 || n > maxGPU {
			return fmt.Errorf("an index is from 0 to %d, is %d", maxGPU, n)
		}
		return nil
	}
	if isUUID(name) {
		return nil
	}
	return fmt.Errorf("%s is neither an NVML index, such as 0, nor a UUID, such as GPU-8c4a2a54-91b7-4b0e-9f3d-3c2b6f6d1a20; nvidia-smi -L lists both", wording.Quote(name))
}

// isUUID says whether a name has the form of NVML's: GPU- or MIG- and a UUID.
// Old drivers write MIG-GPU-, a UUID and two numbers behind slashes.
func isUUID(name string) bool {
	prefix, rest, _ := strings.Cut(name, "-")
	prefix = strings.ToUpper(prefix)
	return (prefix == "GPU" || prefix == "MIG") && rest != "" && len(rest) <= 64 &&
		strings.Trim(rest, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-/") == ""
}
