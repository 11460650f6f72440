// GPU: how workers name the GPUs that they run on.

package config

import (
	"fmt"
	"strings"

	"kvasir/upstream"
	"kvasir/wording"
)

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
		if err := upstream.CheckGPU(name); err != nil {
			v.add(err.Error(), at)
			continue
		}
		v.once(seen, strings.ToLower(name), at, wording.Quote(name)+" is named twice")
	}
}
