// Tests of single values.

package config

import (
	"strings"
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	key := &Key{Kind: KindDuration}
	for text, want := range map[string]string{
		"250ms": "250ms", "1m30s": "1m30s", "0": "0s", "1h": "1h", "90m": "1h30m", "1.5s": "1.5s",
		"10":              `"10" is not a duration, did you mean "10s"?`,
		"10 s":            `"10 s" is not a duration, did you mean "10s"?`,
		"5min":            `"5min" is not a duration, did you mean "5m"?`,
		"3 hours":         `"3 hours" is not a duration, did you mean "3h"?`,
		"2d":              `"2d" is not a duration, did you mean "48h"?`,
		"10SEC":           `"10SEC" is not a duration, did you mean "10s"?`,
		"soon":            `"soon" is not a duration such as 250ms, 10s or 1m30s`,
		"":                `"" is not a duration such as 250ms, 10s or 1m30s`,
		"999999h9999999d": `"999999h9999999d" is not a duration such as 250ms, 10s or 1m30s`,
	} {
		compare(t, key, text, want)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	key := &Key{Kind: KindSize}
	for text, want := range map[string]string{
		"32MiB": "32MiB", "64KB": "64000", "0": "0", "12": "12", "1GiB": "1GiB", "1.5KiB": "1536", "2 MB": "2000000", "7b": "7", "1TiB": "1TiB",
		"32M":    `"32M" is not a size, did you mean "32MiB"?`,
		"1k":     `"1k" is not a size, did you mean "1KiB"?`,
		"5 blob": `"5 blob" is not a size: the unit is one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB`,
		"MiB":    `"MiB" is not a size such as 32MiB, 64KB or a number of bytes`,
		"0x10":   `"0x10" is not a size such as 32MiB, 64KB or a number of bytes`,
		"010KB":  `"010KB" could be read as octal; write it without the 0 at its beginning`,
		"0.5KiB": "512",
		"NaN":    `"NaN" is not a size such as 32MiB, 64KB or a number of bytes`,
		"1e300":  `"1e300" is out of range`,
		"":       `"" is not a size such as 32MiB, 64KB or a number of bytes`,
	} {
		compare(t, key, text, want)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"12": "12", "-3": "-3", "1.0": `must be a whole number, not "1.0"; did you mean "1"?`, "1.5": `must be a whole number, not "1.5"`,
		"1_000": `must be a whole number, not "1_000"; did you mean "1000"?`, "": `must be a whole number, not ""`,
		"99999999999999999999": `"99999999999999999999" is out of range`,
	} {
		compare(t, &Key{Kind: KindInt}, text, want)
	}
	for text, want := range map[string]string{
		"0.2": "0.2", "1": "1", "1e3": "1000", ".inf": `must be a number, not ".inf"`, "NaN": `must be a number, not "NaN"`, "x": `must be a number, not "x"`,
	} {
		compare(t, &Key{Kind: KindFloat}, text, want)
	}
}

func compare(t *testing.T, key *Key, text, want string) {
	t.Helper()
	v, err := key.Parse(text)
	got := ""
	if err != nil {
		got = err.Error()
	} else {
		got = Show(v)
	}
	if got != want {
		t.Errorf("%q gives %s, want %s", text, got, want)
	}
}

// TestMessagesAreBounded: a message quotes little of what it is about, and
// nothing that a terminal would obey.
func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x1b[31m\n", 10_000)
	_, _, bad := (&Layers{File: "x.yaml"}).merge([]byte("simulate: [{}]\nlog: {level: " + quoteYAML(long) + "}\n" + quoteYAML(long[:300]) + ": 1\n"))
	got := bad.Error()
	if len(bad) != 2 || len(got) > 1000 || strings.ContainsAny(got, "\x1b") || strings.Count(got, "\n") != 1 {
		t.Errorf("%d Problems in %d bytes: %q", len(bad), len(got), got[:min(len(got), 2000)])
	}
}

func quoteYAML(s string) string {
	return `"` + strings.NewReplacer("\x1b", `\e`, "\n", `\n`).Replace(s) + `"`
}

func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	_, _, bad := (&Layers{File: "x.yaml"}).merge([]byte("workers: [" + strings.Repeat("{}, ", 1000) + "]"))
	lines := strings.Split(bad.Error(), "\n")
	if len(lines) != maxProblems+1 || lines[maxProblems] != "and 900 more" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

func TestSameListen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1:80", "127.0.0.1:80", true}, {"127.0.0.1:80", "127.0.0.1:81", false}, {":80", "127.0.0.1:80", true},
		{"0.0.0.0:80", "10.0.0.1:80", true}, {"localhost:80", "127.0.0.1:80", true}, {"127.0.0.1:0", "127.0.0.1:0", false},
		{"unix:/a", "unix:/a", true}, {"unix:/a", "unix:/b", false}, {"unix:/a", ":80", false}, {"[::1]:80", "127.0.0.1:80", false},
	} {
		if got := sameListen(tt.a, tt.b); got != tt.want || sameListen(tt.b, tt.a) != tt.want {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
	}
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, "unix:/a": true, ":1": false, "0.0.0.0:1": false, "10.0.0.1:1": false, "host:1": false,
	} {
		if IsLoopback(addr) != want {
			t.Errorf("%s: loopback is not %v", addr, want)
		}
	}
}

func TestNeedRestart(t *testing.T) {
	t.Parallel()
	a, _, _ := (&Layers{}).merge([]byte("simulate: [{}]"))
	b, _, _ := (&Layers{}).merge([]byte("simulate: [{seed: 1}]\nserver: {listen: ':1', admin: '', max_body: 1, tls: {cert: a, key: b}}\nlog: {level: warn, format: json}\nrouting: {policy: p2c}"))
	b.Server.Timeouts.Header, b.Server.Timeouts.Write = time.Minute, time.Minute
	got := strings.Join(NeedRestart(a, b), " ")
	if want := "server.listen server.admin server.timeouts.header simulate log.format server.tls"; got != want {
		t.Errorf("keys are %q, want %q", got, want)
	}
	if got := NeedRestart(a, a); len(got) != 0 {
		t.Errorf("nothing changed, but %v", got)
	}
}
