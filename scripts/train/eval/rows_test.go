// The tests of the Python beside it, which need its standard library alone.

package main

import (
	"os/exec"
	"testing"
)

// TestRows runs the tests of what is learned and what is measured, which are in Python as rows.py is.
func TestRows(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	if out, err := exec.CommandContext(t.Context(), python, "-B", "-m", "unittest", "discover", "-s", "..", "-p", "*_test.py").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
