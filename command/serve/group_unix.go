// Commands and what they start, on Unix: a group that is ended as one.

//go:build unix

package serve

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup lets a command run in a process group of its own, that is asked to end when its context is done. end ends what
// is left of it, after Run.
func ownGroup(cmd *exec.Cmd) (end func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGTERM) }
	return func() {
		if cmd.Process != nil { // it was started
			_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // ESRCH: nothing is left
		}
	}
}
