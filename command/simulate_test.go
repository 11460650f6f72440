// Tests of the flags of `kvasir simulate`.

package command

import (
	"testing"

	"kvasir/config"
)

func TestSimulateHelpIsWhole(t *testing.T) {
	t.Parallel()
	for _, c := range config.Find("simulate").Elem.Children {
		if simulateHelp[c.Name] == "" {
			t.Errorf("kvasir simulate does not say what %s does", c.Name)
		}
	}
}
