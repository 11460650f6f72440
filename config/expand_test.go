// Tests of variables in values, and of what messages say of them.

package config

import (
	"strings"
	"testing"
)

// What a variable holds is not shown by any message, whole, in part or cut off: its name is.
func TestErrorsNameVariables(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("s3cr3t-", 20)
	environ := []string{"SECRET=s3cr3t-0123456789", "LONG=" + long, "QUOTED=a\"s3cr3t\"\tb c", "URL=ftp://s3cr3t-host:s3cr3t-port", "PORT=808O", "SHORT=x"}
	for text, want := range map[string]string{
		"log: {level: '${SECRET}'}":                            `log.level: must be trace, debug, info, warn or error, not "${SECRET}"`,
		"log: {level: 'a ${LONG}'}":                            `log.level: must be trace, debug, info, warn or error, not "a ${LONG}"...`,
		"log: {level: '${QUOTED}'}":                            `log.level: must be trace, debug, info, warn or error, not "${QUOTED}"`,
		"log: {level: '${SHORT}'}":                             `log.level: must be trace, debug, info, warn or error, not "x"`,
		"log: {level: '${NONE:-default}'}":                     `log.level: must be trace, debug, info, warn or error, not "default"`,
		"workers: [{url: '${URL}'}]":                           `workers[0].url: `,
		"workers: [{url: 'http://h:${PORT}'}]":                 `workers[0].url: `,
		"simulate: [{name: '${SECRET}'}, {name: '${SECRET}'}]": `"${SECRET}"`,
		"server: {listen: '${SECRET}'}":                        `server.listen: `,
		"server: {drain: '${SECRET}'}":                         `server.drain: `,
	} {
		if !strings.Contains(text, "simulate") && !strings.Contains(text, "workers") {
			text += "\nsimulate: [{}]"
		}
		l := &Layers{BuiltIn: []byte(text), Environ: environ}
		_, _, err := l.Load()
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		got := err.Error()
		if strings.Contains(got, "s3cr3t") || strings.Contains(got, "808O") || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	_, err := readWorkers(t, nil, "- {url: http://a:1, role: '${SECRET}'}\n")
	if err == nil || !strings.Contains(err.Error(), "not set") {
		t.Errorf("a variable that is not set: %v", err)
	}
	g := &Generation{Config: &Config{}, env: func(string) (string, bool) { return "s3cr3t-0123456789", true }}
	_, err = g.ReadWorkers(&Discovery{Kind: "file", Role: "both"}, "/nowhere/w.yaml", []byte("- {url: 'http://${SECRET}/x y', role: 'a${SECRET}'}\n"))
	if err == nil || strings.Contains(err.Error(), "s3cr3t") || strings.Count(err.Error(), "${SECRET}") != 2 {
		t.Errorf("a file of workers: %v", err)
	}
}
