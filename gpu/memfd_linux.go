// Memfd: the helper as a file in memory, and starting it.

package gpu

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// memfd copies a program into a sealed file in memory, which cannot be changed afterwards. The
// caller closes it.
func memfd(program io.Reader) (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("kvasir-gpu", flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 every such file is executable
		fd, err = unix.MemfdCreate("kvasir-gpu", flags)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a program in memory (is vm.memfd_noexec set?): %w", err)
	}
	f := os.NewFile(uintptr(fd), "kvasir-gpu")
	if _, err := io.Copy(f, program); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot unpack the helper: %w", err)
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot seal the helper in memory: %w", err)
	}
	return f, nil
}

// runs makes cmd run the program in memory, in its own process group (Kvasir handles Ctrl-C), and
// end when the thread that started it ends.
func runs(cmd *exec.Cmd, program *os.File) {
	// The child resolves the path before close-on-exec takes effect.
	cmd.Path = "/proc/self/fd/" + strconv.Itoa(int(program.Fd()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// refused returns an error if the start would fail every time; nil: the next try may succeed.
func refused(err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		if _, bad := os.Stat("/proc/self/fd"); bad != nil {
			return errors.New("the NVML helper cannot be started: /proc is not mounted")
		}
		return errors.New("the NVML helper cannot be started: this system has no glibc, which the driver's library needs; use an image with glibc, or run Kvasir on the host")
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("the NVML helper cannot be started: this system does not let a program run from memory (vm.memfd_noexec, SELinux or a seccomp profile): %w", err)
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Errorf("the NVML helper cannot be started: it is not a program for this machine: %w", err)
	}
	return nil
}
