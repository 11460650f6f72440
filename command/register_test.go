// Tests of the flags of `kvasir register`; what it does is tested against a real etcd, in e2e.

package command

import (
	"testing"

	"kvasir/config"
)

func TestRegisterHelpIsWhole(t *testing.T) {
	t.Parallel()
	for _, c := range config.ValueKeys() {
		if registerHelp[c.Name] == "" {
			t.Errorf("kvasir register does not say what %s does", c.Name)
		}
	}
}
