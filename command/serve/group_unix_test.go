// Tests that a command that takes too long ends with all that it started.

//go:build unix

package serve

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kvasir/config"
	"kvasir/kvroute/replay"
	"kvasir/planner"
)

// A command is asked to end with its children; those that do not are killed, also where the command itself has ended.
func TestCommandEndsWithItsChildren(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"children that end", `sleep 300 & echo $! > "$D/pid"; trap 'echo asked > "$D/asked"; exit 1' TERM; wait`},
		{"children that do not", `sh -c 'trap "" TERM; echo $$ > "$D/pid"; while :; do sleep 300; done' & trap 'echo asked > "$D/asked"; exit 1' TERM; wait`},
		{"a command that does not", `trap "" TERM; echo $$ > "$D/pid"; echo never > "$D/asked"; while :; do sleep 300; done`},
		{"a command that leaves a child at its outputs", `sleep 300 & echo $! > "$D/pid"; echo never > "$D/asked"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("D", dir)
			r := rehearse("apply", config.Planner{Command: []string{"sh", "-c", c.script}, CommandTimeout: 500 * time.Millisecond})
			report := &planner.Report{}
			r.apply(context.Background(), replay.Fleet{Workers: 1}, report)
			if report.Failures[planner.CommandFailed] != 1 || report.Applied != nil {
				t.Errorf("%+v", report)
			}
			said, err := os.ReadFile(filepath.Join(dir, "pid"))
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(said)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "asked")); err != nil {
				t.Error("it was not asked to end")
			}
			for deadline := time.Now().Add(10 * time.Second); !gone(pid); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("process %d goes on", pid)
				}
			}
		})
	}
}

// gone says whether a process is no more, or only waits for its parent to hear of that.
func gone(pid int) bool {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}
