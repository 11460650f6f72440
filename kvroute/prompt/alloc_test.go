//go:build !race

// What is allocated for a prompt; the race detector empties pools, so not there.

package prompt

import (
	"context"
	"strings"
	"testing"
)

// Memory is made for each message, and a few pieces for the whole, however long the texts are.
func TestChatAllocs(t *testing.T) {
	m := model(t, NewLibrary(Options{HubCache: t.TempDir()}), aModel(t, t.TempDir(), chatML), Hints{})
	dst := make([]uint32, 0, 1<<17)
	allocs := func(messages, bytes int) float64 {
		one := `{"role":"user","content":"` + strings.Repeat(`all the text\n`, bytes/13) + `"},`
		body := []byte(`{"messages":[` + strings.TrimSuffix(strings.Repeat(one, messages), ",") + `]}`)
		if _, err := m.Chat(context.Background(), dst, body); err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(50, func() {
			if _, err := m.Chat(context.Background(), dst, body); err != nil {
				t.Fatal(err)
			}
		})
	}
	short, long := allocs(10, 1<<10), allocs(10, 20<<10)
	if long > short+4 {
		t.Errorf("%v allocations for 10 KB, %v for 200 KB", short, long)
	}
	if more := (allocs(110, 1<<10) - short) / 100; more > 8 {
		t.Errorf("%v allocations for each message", more)
	}
}
