//go:build linux

// Noise: how much of the machine other processes used during the measurement.

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is processor time since the machine started, or since bench did.
type usage struct {
	at    time.Time
	all   time.Duration // by every process
	stole time.Duration // taken by the hypervisor
	own   time.Duration // by bench and the children that have ended
}

// jiffy is the unit of /proc/stat: USER_HZ is 100 on every Linux that bench runs on.
const jiffy = 10 * time.Millisecond

func readUsage() (usage, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return usage{}, fmt.Errorf("cannot read processor time: %w", err)
	}
	u, err := parseUsage(string(text))
	if err != nil {
		return usage{}, err
	}
	u.at = time.Now()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if err := syscall.Getrusage(who, &r); err != nil {
			return usage{}, fmt.Errorf("cannot read our processor time: %w", err)
		}
		u.own += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return u, nil
}

// parseUsage reads the first line of /proc/stat: user nice system idle iowait
// irq softirq steal ...
func parseUsage(text string) (usage, error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return usage{}, fmt.Errorf("cannot read processor time: %q", line)
	}
	var u usage
	for i, field := range fields[1:9] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("cannot read processor time: %w", err)
		}
		switch spent := time.Duration(n) * jiffy; i {
		case 3, 4: // idle
		case 7:
			u.stole = spent
		default:
			u.all += spent
		}
	}
	return u, nil
}

// noise describes what other processes used between two readings, of `cores` cores.
func noise(from, to usage, cores int) string {
	whole := float64(to.at.Sub(from.at)) * float64(cores)
	others := max(0, float64((to.all-from.all)-(to.own-from.own)))
	stolen := float64(to.stole - from.stole)
	text := fmt.Sprintf("Meanwhile others used %.0f %% of the processors, the hypervisor took %.0f %%.", 100*others/whole, 100*stolen/whole)
	if others+stolen > whole/20 {
		text += " **A busy machine: read ratios, not figures, and repeat the run.**"
	}
	return text
}
