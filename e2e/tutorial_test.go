// The tutorials, docs/tutorial-*.md, gone through as a reader does: each file of a yaml block is written, each command of
// a console block run, in one shell a page, and what it prints compared with what the page shows.

package e2e

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// update is also of what the chart is expected to render.
var update = flag.Bool("update", false, "write what the tutorials' commands print into the pages, or what the chart renders; read the diff")

func TestTutorials(t *testing.T) {
	part(t, "readme-curl")
	pages, err := filepath.Glob("../docs/tutorial-*.md")
	if err != nil || len(pages) < 2 {
		t.Fatalf("the tutorials are %v, %v", pages, err)
	}
	for _, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			s := openShell(t)
			commands := 0
			now := regexp.MustCompile("(?ms)^```(yaml|console)\n(.*?)^```$").ReplaceAllStringFunc(string(text), func(block string) string {
				language, block, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(block, "```"), "```"), "\n")
				if language == "yaml" {
					s.write(t, block)
					return "```yaml\n" + block + "```"
				}
				now := "```console\n"
				for _, part := range regexp.MustCompile(`(?m)^\$ `).Split("\n"+block, -1)[1:] {
					commands++
					command, shown, _ := strings.Cut(part, "\n")
					now += "$ " + command + "\n" + s.expect(t, command, shown)
				}
				return now + "```"
			})
			if *update && now != string(text) {
				if err := os.WriteFile(page, []byte(now), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if commands < 5 {
				t.Errorf("only %d commands were found", commands)
			}
		})
	}
}

// A shell is one bash in a folder of its own, with bin/kvasir in it, and ports of its own for those of the page.
type shell struct {
	dir      string
	in       io.Writer
	out      *bufio.Reader
	own, its *strings.Replacer // the page's ports to the test's, and back
}

func openShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{dir: t.TempDir()}
	var own, its []string
	for _, port := range []string{"8000", "8001", "8080", "9090"} {
		address := freeAddress(t)
		own, its = append(own, "127.0.0.1:"+port, address), append(its, address, "127.0.0.1:"+port)
	}
	s.own, s.its = strings.NewReplacer(own...), strings.NewReplacer(its...)
	if err := os.Mkdir(filepath.Join(s.dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary(t), filepath.Join(s.dir, "bin/kvasir")); err != nil {
		t.Fatal(err)
	}
	bash := exec.Command("bash")
	bash.Dir = s.dir
	bash.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "KVASIR_") }), s.own.Replace("KVASIR_SERVER_LISTEN=127.0.0.1:8080"), s.own.Replace("KVASIR_SERVER_ADMIN=127.0.0.1:9090"))
	bash.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	bash.Stdout, bash.Stderr = feed, feed
	in, err := bash.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bash.Start(); err != nil {
		t.Fatal(err)
	}
	feed.Close()
	t.Cleanup(func() {
		// Its programs are in its group. They may end in any way.
		_ = syscall.Kill(-bash.Process.Pid, syscall.SIGKILL)
		_ = bash.Wait()
		out.Close()
	})
	s.in, s.out = in, bufio.NewReader(out)
	return s
}

// write writes the file that a block is, by the name in its first line.
func (s *shell) write(t *testing.T, block string) {
	t.Helper()
	first, _, _ := strings.Cut(block, "\n")
	name, ok := strings.CutPrefix(first, "# ")
	if !ok || filepath.Base(name) != name || filepath.Ext(name) != ".yaml" {
		t.Fatalf("a block does not begin with the name of its file: %s", first)
	}
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(s.own.Replace(block)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// expect runs a command until it prints what the page shows, but for numbers and ids: a worker may still be starting, and
// an answer not kept yet. With -update it returns what is printed a moment after the command before.
func (s *shell) expect(t *testing.T, command, shown string) string {
	t.Helper()
	again := asks.MatchString(command) && !strings.HasSuffix(command, "&")
	if *update && again {
		time.Sleep(4 * time.Second)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		got := s.run(t, command)
		switch {
		case *update:
			if got != "" && !strings.HasSuffix(got, "\n") {
				got += "\n"
			}
			return got
		case alike(got) == alike(shown):
			return shown
		case !again || time.Now().After(deadline):
			log, _ := os.ReadFile(filepath.Join(s.dir, "kvasir.log"))
			t.Fatalf("%s\nprints\n%s\nthe page has\n%s\n%s", command, got, shown, tail(string(log), 3000))
		}
	}
}

// asks is a command that changes nothing, so that it can be run again.
var asks = regexp.MustCompile(`^(curl|ask|echo|bin/kvasir (check|health|explain|classify)) `)

// run runs one command and returns what it prints, with the page's ports.
func (s *shell) run(t *testing.T, command string) string {
	t.Helper()
	const end = "-- end of the command --"
	if _, err := fmt.Fprintf(s.in, "%s\necho '%s'\n", s.own.Replace(command), end); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	var out strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: the shell ended: %v\n%s", command, err, out.String())
		}
		// A command need not end its last line.
		if before, ok := strings.CutSuffix(line, end+"\n"); ok {
			out.WriteString(before)
			return s.its.Replace(strings.ReplaceAll(out.String(), "\r", ""))
		}
		out.WriteString(line)
	}
}

var (
	ids     = regexp.MustCompile(`\b[0-9a-f]{8,}(-[0-9a-f]{4,})*\b`)
	numbers = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
	blanks  = regexp.MustCompile(` +`)
)

// alike is a text without what differs from run to run: ids, numbers, and the blanks that line them up.
func alike(text string) string {
	text = numbers.ReplaceAllString(ids.ReplaceAllString(text, "ID"), "N")
	return strings.TrimSpace(blanks.ReplaceAllString(text, " "))
}
