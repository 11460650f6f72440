// GPU: how workers name the GPUs that they run on.

package config

import (
	"fmt"
	"strconv"
	"strings"

	"kvasir/wording"
)

// maxGPU is the highest NVML index that a configuration may name: no host has as many.
const maxGPU = 255

// gpus finds what is wrong with the GPUs that workers name.
func (v *validation) gpus(c *Config) {
	for i := range c.Workers {
		v.gpuList(fmt.Sprintf("workers[%d].gpus", i), c.Workers[i].GPUs)
	}
	for i := range c.Simulate {
		v.gpuList(fmt.Sprintf("simulate[%d].gpus", i), c.Simulate[i].GPUs)
	}
}

// gpuList wants NVML indices and UUIDs, each once. Several workers may name one
// GPU, and one worker several.
func (v *validation) gpuList(path string, gpus []string) {
	seen := map[string]string{}
	for i, name := range gpus {
		at := fmt.Sprintf("%s[%d]", path, i)
		if err := checkGPU(name); err != nil {
			v.add(err.Error(), at)
			continue
		}
		v.once(seen, strings.ToLower(name), at, wording.Quote(name)+" is named twice")
	}
}

// checkGPU wants a GPU's NVML index or its UUID, as nvidia-smi -L lists both.
func checkGPU(name string) error {
	if n, err := strconv.Atoi(name); err == nil && !zeroFirst(name) && name[0] != '+' {
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
