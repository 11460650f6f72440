// The fake library itself: it loads, and its state is replaced atomically.

package nvmltest

import (
	"debug/elf"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestLibrary(t *testing.T) {
	symbols := func(d *Driver) (names []string) {
		file, err := elf.Open(d.Library())
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		all, err := file.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.Section != elf.SHN_UNDEF {
				names = append(names, s.Name)
			}
		}
		return names
	}
	recent, old := symbols(New(t)), symbols(NewOld(t))
	for _, name := range old {
		if !slices.Contains(recent, name) {
			t.Errorf("only the old driver has %s", name)
		}
	}
	for _, name := range []string{"nvmlDeviceGetFieldValues", "nvmlDeviceGetMigMode", "nvmlEventSetWait_v2"} {
		if !slices.Contains(recent, name) || slices.Contains(old, name) {
			t.Errorf("%s should be in the newer library only", name)
		}
	}
}

func TestSet(t *testing.T) {
	d := New(t)
	path, _ := strings.CutPrefix(d.Env()[0], "FAKE_NVML_STATE=")
	d.Set("gpus 1", "0.sm 10")
	first, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	d.Set("gpus 1", "0.sm 20")
	second, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if first.ModTime().Equal(second.ModTime()) {
		t.Error("two states of one size have one time")
	}
	if text, _ := os.ReadFile(path); string(text) != "gpus 1\n0.sm 20\n" {
		t.Errorf("state %q", text)
	}
	d.Unload()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("the state is still there")
	}
}
