//go:build linux

// The report: one table of targets, one table of details for each measurement, and a description
// of the machine.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// verdict is one line of the table of targets.
type verdict struct {
	what     string
	measured string
	wanted   string
	holds    bool
}

// table is one table of details.
type table struct {
	title string
	head  []string
	rows  [][]string
	notes []string
}

type report struct {
	machine string
	before  usage
	noise   string
	subject string
	lines   [][]string
	failed  int
	tables  []table
}

func newReport(ctx context.Context, b *bench) (*report, error) {
	machine, err := describeMachine(ctx, b)
	if err != nil {
		return nil, err
	}
	before, err := readUsage()
	return &report{machine: machine, subject: b.subject(), before: before}, err
}

// close notes how noisy the run was; every child must have ended.
func (r *report) close() error {
	after, err := readUsage()
	if err != nil {
		return err
	}
	r.noise = noise(r.before, after, runtime.NumCPU())
	return nil
}

// judge adds a line that has a target.
func (r *report) judge(v verdict) {
	holds := "yes"
	if !v.holds {
		holds = "**no**"
		r.failed++
	}
	r.lines = append(r.lines, []string{v.what, v.measured, v.wanted, holds})
}

// note adds a line without a target.
func (r *report) note(what, measured string) {
	r.lines = append(r.lines, []string{what, measured, "", ""})
}

// missing adds a line that could not be measured. It counts as missed.
func (r *report) missing(what, wanted string, why error) {
	r.failed++
	r.lines = append(r.lines, []string{what, "not measured: " + why.Error(), wanted, "**?**"})
}

func (r *report) add(t table) { r.tables = append(r.tables, t) }

func (r *report) missed() int { return r.failed }

func (r *report) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, "# Measured: %s\n\n%s\n%s\n\n", r.subject, r.machine, r.noise)
	writeTable(&s, []string{"what", r.subject, "at least", "holds"}, r.lines)
	for _, t := range r.tables {
		fmt.Fprintf(&s, "\n## %s\n\n", t.title)
		writeTable(&s, t.head, t.rows)
		for _, note := range t.notes {
			fmt.Fprintf(&s, "\n%s\n", note)
		}
	}
	return s.String()
}

func writeTable(s *strings.Builder, head []string, rows [][]string) {
	fmt.Fprintf(s, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = strings.ReplaceAll(strings.ReplaceAll(cell, "|", `\|`), "\n", " ")
		}
		fmt.Fprintf(s, "| %s |\n", strings.Join(cells, " | "))
	}
}

// describeMachine describes the machine that the figures belong to, and how busy it was before
// the run.
func describeMachine(ctx context.Context, b *bench) (string, error) {
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err != nil {
		return "", fmt.Errorf("cannot ask for the kernel: %w", err)
	}
	busy, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "", fmt.Errorf("cannot read load: %w", err)
	}
	facts := []string{
		time.Now().Format("2006-01-02 15:04"),
		fmt.Sprintf("%d cores (%s)", runtime.NumCPU(), cpuName()),
		"Linux " + unix.ByteSliceToString(kernel.Release[:]),
		"load before the run " + strings.Join(strings.Fields(string(busy))[:3], " "),
	}
	for _, tool := range [][]string{{"nginx", "-v"}, {"wrk", "-v"}} {
		path, err := findTool(tool[0])
		if err != nil {
			return "", err
		}
		out, _ := exec.CommandContext(ctx, path, tool[1]).CombinedOutput() // wrk -v exits with 1
		facts = append(facts, firstLine(string(out)))
	}
	if b.peer {
		facts = append(facts, "vllm-router 0.1.17")
	}
	if b.under == "kvasir" {
		out, err := exec.CommandContext(ctx, b.kvasir, "version").CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("cannot ask %q for its version: %w: %s", b.kvasir, err, out)
		}
		facts = append(facts, firstLine(string(out)))
	}
	return strings.Join(facts, "; ") + ".", nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line, _, _ = strings.Cut(line, " Copyright")
	return line
}

func cpuName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return "unknown"
}
