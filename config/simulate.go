// Simulate: what no single key shows of a simulated engine, in a list or alone.

package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-viper/mapstructure/v2"

	"kvasir/wording"
)

// tooLong says that a single sequence would not fit into the engine's blocks;
// "" if it does.
func (c Simulate) tooLong() string {
	if pool := c.Blocks * c.BlockSize; c.MaxModelLen > pool {
		return fmt.Sprintf("%d is more than the %d tokens that the blocks hold (%d of %d)", c.MaxModelLen, pool, c.Blocks, c.BlockSize)
	}
	return ""
}

// NewSimulate is one engine that stands alone, of the values of its keys as
// Key.Parse gives them. The error names a key as the flag of its name: --model.
func NewSimulate(values map[string]any) (Simulate, error) {
	var c Simulate
	dec, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{TagName: "koanf", Result: &c, ErrorUnused: true})
	if err == nil {
		err = dec.Decode(values)
	}
	if err != nil {
		panic("BUG: checked values do not fit Simulate: " + err.Error())
	}
	v := &validation{}
	v.name("name", c.Name, wording.Quote(c.Name))
	v.modelNames("model", []string{c.Model}, false)
	if text := c.tooLong(); text != "" {
		v.add(text, "max_model_len")
	}
	for _, found := range v.found {
		return c, errors.New("--" + strings.ReplaceAll(found.paths[0], "_", "-") + ": " + found.text)
	}
	return c, nil
}
