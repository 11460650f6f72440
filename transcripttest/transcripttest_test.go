// The test of how a transcript is played.

package transcripttest

import (
	"strings"
	"testing"
)

// TestReplay: commands and comments stay, old answers go, new ones take their place.
func TestReplay(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	got := Replay("# about\nadd 1\nadd 2\n----\nold\nolder\n\nadd 3\n----\n\n\n",
		func(command string) { said.WriteString(command + "!\n") },
		func() string { defer said.Reset(); return said.String() })
	if want := "# about\nadd 1\nadd 2\n----\nadd 1!\nadd 2!\n\nadd 3\n----\nadd 3!\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
