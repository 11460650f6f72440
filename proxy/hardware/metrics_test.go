// Tests of the metrics of GPUs.

package hardware

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kvasir/gpu"
	"kvasir/gpu/snapshot"
	"kvasir/proxy/hardware/hardwaretest"
)

// Series have DCGM exporter's names, labels and units; a field that is absent has none, nor has a GPU whose snapshot
// is stale.
func TestGPUSeries(t *testing.T) {
	m := &hardwaretest.Fleet{}
	m.Set(3, func(g []gpu.GPU) {
		hardwaretest.Everything(&g[0])
		g[1].GPU = snapshot.GPU{Index: 1, UUID: "GPU-1", SMUtilization: hardwaretest.Some(0.0)}
		hardwaretest.Everything(&g[2])
		g[2].State, g[2].Why, g[2].Age, g[2].At = gpu.Stale, "late", 1500, time.Now()
	})
	w := watching(t, m)
	w.follow()
	waitUntil(t, "it was looked at", w.seen)
	got := map[string]string{}
	host := ` hostname="` + hostname() + `",`
	for line := range strings.Lines(w.metrics()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if strings.HasPrefix(name, "DCGM_") || strings.HasPrefix(name, "kvasir_gpu_") {
			got[strings.ReplaceAll(name, host[1:], "")] = value
		}
	}
	of := func(name string) string {
		return name + `{UUID="GPU-0",device="nvidia0",gpu="0",modelName="NVIDIA H100 80GB HBM3",pci_bus_id="00000000:07:00.0"`
	}
	of1 := `{UUID="GPU-1",device="nvidia1",gpu="1",modelName="",pci_bus_id=""`
	instance := func(name string) string {
		return name + `{GPU_I_ID="7",GPU_I_PROFILE="2g.20gb",` + strings.TrimPrefix(of(""), "{")
	}
	want := map[string]string{
		of("DCGM_FI_DEV_SM_CLOCK"): "1980", of("DCGM_FI_DEV_MEM_CLOCK"): "2619", of("DCGM_FI_DEV_MAX_SM_CLOCK"): "1980", of("DCGM_FI_DEV_MAX_MEM_CLOCK"): "2619",
		of("DCGM_FI_DEV_GPU_TEMP"): "51", of("DCGM_FI_DEV_POWER_USAGE"): "350.5", of("DCGM_FI_DEV_POWER_MGMT_LIMIT"): "700",
		of("DCGM_FI_DEV_GPU_UTIL"): "50", of("DCGM_FI_DEV_MEM_COPY_UTIL"): "20",
		of("DCGM_FI_DEV_FB_FREE"): "19456", of("DCGM_FI_DEV_FB_USED"): "61440", of("DCGM_FI_DEV_FB_TOTAL"): "81920",
		of("DCGM_FI_DEV_XID_ERRORS"): "79", of("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"): "2", of("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"): "3",
		of("DCGM_FI_DEV_CLOCKS_EVENT_REASONS"): "65",
		of("DCGM_FI_PROF_PCIE_RX_BYTES"):       "1", of("DCGM_FI_PROF_PCIE_TX_BYTES"): "2", of("DCGM_FI_PROF_NVLINK_RX_BYTES"): "3", of("DCGM_FI_PROF_NVLINK_TX_BYTES"): "4",
		instance("DCGM_FI_DEV_FB_FREE"): "9216", instance("DCGM_FI_DEV_FB_USED"): "1024", instance("DCGM_FI_DEV_FB_TOTAL"): "10240",
		"DCGM_FI_DEV_GPU_UTIL" + of1:                       "0",
		`kvasir_gpu_telemetry{state="ok"`:                  "1",
		`kvasir_gpu_state{UUID="GPU-0",gpu="0",state="ok"`: "1", `kvasir_gpu_state{UUID="GPU-1",gpu="1",state="ok"`: "1", `kvasir_gpu_state{UUID="GPU-2",gpu="2",state="stale"`: "1",
		`kvasir_gpu_age_seconds{UUID="GPU-0",gpu="0"`: "0", `kvasir_gpu_age_seconds{UUID="GPU-1",gpu="1"`: "0", `kvasir_gpu_age_seconds{UUID="GPU-2",gpu="2"`: "1.5",
		`kvasir_gpu_throttle_reason{UUID="GPU-0",gpu="0",reason="gpu_idle"`: "1", `kvasir_gpu_throttle_reason{UUID="GPU-0",gpu="0",reason="hw_thermal_slowdown"`: "1",
		`kvasir_gpu_recovery_action{UUID="GPU-0",action="none",gpu="0"`: "1",
		`kvasir_gpu_worker{UUID="GPU-0",gpu="0",worker="w0"`:            "1", `kvasir_gpu_worker{UUID="GPU-1",gpu="1",worker="w1"`: "1",
	}
	if !maps.Equal(got, want) {
		t.Errorf("the series are\n%swant\n%s", listed(got), listed(want))
	}
}

// A MIG device's profile is named as DCGM exporter does.
func TestMIGProfile(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA A100-SXM4-40GB MIG 1g.5gb": "1g.5gb", "NVIDIA A100-SXM4-40GB MIG 1g.5gb+me": "1g.5gb+me", "H100 MIG 2c.3g.40gb": "3g.40gb",
		"1g.10gb": "1g.10gb", "": "", "a thing of its own": "a thing of its own",
	} {
		if got := migProfile(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

// TestDCGMPage wants a row in docs/metrics.md for each metric in DCGM exporter's names, and no other.
func TestDCGMPage(t *testing.T) {
	want := map[string]string{}
	for _, f := range dcgmFields {
		want[f.name] = map[bool]string{false: "gauge", true: "untyped"}[f.counts]
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (DCGM_\w+) \| (\w+) \| (.+) \|$`).FindAllStringSubmatch(string(page), -1) {
		got[row[1]] = row[2]
	}
	if !maps.Equal(got, want) {
		t.Errorf("docs/metrics.md has\n%s\nthe collector\n%s", listed(got), listed(want))
	}
	if len(want) != len(dcgmFields) {
		t.Error("a field is there twice")
	}
}

func listed(m map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "  %s %s\n", name, m[name])
	}
	return b.String()
}
