// The table of `kvasir gpu`: one line for each GPU, and under it who runs there and what is wrong.

package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kvasir/gpu"
	"kvasir/gpu/snapshot"
	"kvasir/wording"
)

// tableWidth is the width of a table in columns; no line is wider.
const tableWidth = 100

// A gpuColumn is one column: its width in characters, what stands there for a GPU.
type gpuColumn struct {
	title string
	width int
	value func(*snapshot.GPU) string
}

var gpuColumns = []gpuColumn{
	{"SM%", 4, func(g *snapshot.GPU) string { return figure(g.SMUtilization) }},
	{"MEM%", 4, func(g *snapshot.GPU) string { return figure(g.MemoryUtilization) }},
	{"MEMORY", 17, func(g *snapshot.GPU) string { return ofMost(gibibytes(g.MemoryUsed), gibibytes(g.MemoryTotal), "GiB") }},
	{"POWER", 11, func(g *snapshot.GPU) string { return ofMost(figure(g.Power), figure(g.PowerLimit), "W") }},
	{"TEMP", 5, func(g *snapshot.GPU) string { return ofMost(figure(g.Temperature), unknown, "C") }},
	{"SM CLOCK", 13, func(g *snapshot.GPU) string { return ofMost(figure(g.SMClock), figure(g.SMClockMax), "MHz") }},
}

// unknown stands for what the driver does not give.
const unknown = "-"

// gpuTable is the whole table of a fleet, with a line at its head.
func gpuTable(f *gpu.Fleet) string {
	var b strings.Builder
	driver := "driver " + f.Driver
	if f.Driver == "" {
		driver = "driver unknown"
	}
	fmt.Fprintf(&b, "%s, %s", driver, wording.Count(len(f.GPUs), "GPU"))
	if f.State != gpu.OK {
		fmt.Fprintf(&b, "; telemetry is %s", f.State)
	}
	b.WriteByte('\n')
	if f.Why != "" {
		appendWrapped(&b, f.Why)
	}
	if len(f.GPUs) == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "%3s  %-20s  %-5s", "GPU", "NAME", "STATE")
	for _, c := range gpuColumns {
		fmt.Fprintf(&b, "  %*s", c.width, c.title)
	}
	b.WriteByte('\n')
	for i := range f.GPUs {
		appendGPU(&b, &f.GPUs[i])
	}
	return b.String()
}

func appendGPU(b *strings.Builder, g *gpu.GPU) {
	name := strings.TrimPrefix(g.Name, "NVIDIA ")
	if name == "" {
		name = unknown
	}
	fmt.Fprintf(b, "%3d  %-20.20s  %-5s", g.Index, name, g.State)
	for _, c := range gpuColumns {
		value := unknown // what is stale says nothing of now
		if g.State == gpu.OK {
			value = c.value(&g.GPU)
		}
		fmt.Fprintf(b, "  %*s", c.width, value)
	}
	b.WriteByte('\n')
	for _, m := range g.MIG {
		appendWrapped(b, fmt.Sprintf("MIG %d/%d %s %s", m.GPUInstance, m.ComputeInstance, m.Name, ofMost(gibibytes(m.MemoryUsed), gibibytes(m.MemoryTotal), "GiB")))
	}
	if len(g.Workers) > 0 {
		appendWrapped(b, "workers: "+strings.Join(g.Workers, ", "))
	}
	if troubles := gpuTroubles(g); len(troubles) > 0 {
		appendWrapped(b, strings.Join(troubles, "; "))
	}
}

// gpuTroubles lists what is wrong with a GPU.
func gpuTroubles(g *gpu.GPU) (all []string) {
	if g.State != gpu.OK {
		return []string{g.Why}
	}
	if reasons := slices.DeleteFunc(slices.Clone(g.ThrottleReasons), func(r string) bool { return r == "gpu_idle" }); len(reasons) > 0 {
		all = append(all, "clocks held down by "+strings.Join(reasons, ", "))
	}
	if g.ECCErrors != nil && *g.ECCErrors > 0 {
		all = append(all, wording.Count(int(*g.ECCErrors), "uncorrected ECC error"))
	}
	for _, x := range g.Xids {
		all = append(all, fmt.Sprintf("Xid %d", x.Number))
	}
	if g.Recovery != nil && *g.Recovery != "none" {
		all = append(all, "the driver asks for "+*g.Recovery)
	}
	return all
}

// appendWrapped appends text below a GPU's line, broken at blanks.
func appendWrapped(b *strings.Builder, text string) {
	const indent = "     "
	at := 0
	for word := range strings.FieldsSeq(text) {
		if at > 0 && at+1+len(word) > tableWidth {
			b.WriteByte('\n')
			at = 0
		}
		if at == 0 {
			b.WriteString(indent)
			at = len(indent)
		} else {
			b.WriteByte(' ')
			at++
		}
		word = word[:min(len(word), tableWidth-len(indent))]
		b.WriteString(word)
		at += len(word)
	}
	b.WriteByte('\n')
}

// figure is a value without a fraction.
func figure(v *float64) string {
	if v == nil {
		return unknown
	}
	return strconv.FormatFloat(*v, 'f', 0, 64)
}

func gibibytes(n *uint64) string {
	if n == nil {
		return unknown
	}
	return strconv.FormatFloat(float64(*n)/(1<<30), 'f', 1, 64)
}

// ofMost is a value with its unit, and its bound where one is known: 350/700 W.
func ofMost(value, most, unit string) string {
	switch {
	case value == unknown:
		return unknown
	case most != unknown:
		value += "/" + most
	}
	return value + " " + unit
}
