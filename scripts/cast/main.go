// Writes docs/pictures/cast.svg: a terminal session as a picture that moves, recorded from a real Kvasir.
//
//	make cast                       needs bin/kvasir, bash and curl (7.82 or later)
//	go run ./scripts/cast -session scripts/cast/session.txt -out docs/pictures/cast.svg
//
// The session has one command a line, after "$ ", and remarks, after "# "; an empty line clears the screen. Commands run
// in bash against `bin/kvasir serve` with the built-in configuration. What they print is shown as it came, when it came,
// with one change: Kvasir takes free ports, and the picture shows those of `make run`. Typing is made up.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	session := flag.String("session", "scripts/cast/session.txt", "the `file` with the commands")
	out := flag.String("out", "docs/pictures/cast.svg", "the picture, a `file`")
	flag.Parse()
	text, err := os.ReadFile(*session)
	if err != nil {
		log.Fatal(err)
	}
	scenes, err := record(string(text))
	if err != nil {
		log.Fatal(err)
	}
	picture := draw(scenes)
	if err := os.WriteFile(*out, picture, 0o644); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %d scenes, %.0f KB\n", *out, len(scenes), float64(len(picture))/1e3)
}

// A chunk is what was printed at once.
type chunk struct {
	at   time.Duration // since the scene began
	text string
}

// A scene is what is on the screen between two times that it is cleared.
type scene struct {
	chunks []chunk
	length time.Duration
}

// How fast somebody types, and how long the reader has for what was printed.
const (
	keystroke = 9 * time.Millisecond
	pause     = 200 * time.Millisecond
	reading   = 2200 * time.Millisecond
)

// record plays the session.
func record(session string) ([]scene, error) {
	k, err := start()
	if err != nil {
		return nil, err
	}
	defer k.stop()
	var scenes []scene
	var defined []string // functions, which every command knows
	for part := range strings.SplitSeq(strings.TrimSpace(session), "\n\n") {
		var s scene
		for line := range strings.SplitSeq(part, "\n") {
			command, isCommand := strings.CutPrefix(line, "$ ")
			if !isCommand {
				s.print(line + "\n")
				s.length += pause
				continue
			}
			s.typed("$ ", command)
			switch {
			case command == "bin/kvasir":
				s.show(k.started)
			case function.MatchString(command):
				defined = append(defined, command)
			default:
				printed, err := k.run(strings.Join(append(defined, command), "\n"))
				if err != nil {
					return nil, fmt.Errorf("%s: %w", command, err)
				}
				s.show(printed)
			}
			s.length += pause
		}
		s.length += reading
		scenes = append(scenes, s)
	}
	return scenes, nil
}

var function = regexp.MustCompile(`^\w+\(\) \{`)

func (s *scene) print(text string) { s.chunks = append(s.chunks, chunk{s.length, text}) }

// typed shows a command as if somebody typed it, a few letters at a time.
func (s *scene) typed(prompt, command string) {
	s.print(prompt)
	s.length += pause
	for len(command) > 0 {
		n := min(4, len(command))
		s.print(command[:n])
		command = command[n:]
		s.length += time.Duration(n) * keystroke
	}
	s.print("\n")
}

// show adds what was printed, when it was.
func (s *scene) show(printed []chunk) {
	from := s.length
	for _, c := range printed {
		s.length = from + c.at
		s.print(c.text)
	}
}

// A kvasir is the one under record.
type kvasir struct {
	cmd     *exec.Cmd
	admin   string            // its admin listener
	ports   *strings.Replacer // its own to those that are shown
	own     *strings.Replacer // and back
	started []chunk           // what it logs until it serves
}

// start serves the built-in configuration, as bin/kvasir without arguments does.
func start() (*kvasir, error) {
	api, admin := freePort(), freePort()
	k := &kvasir{
		admin: admin,
		ports: strings.NewReplacer(api, "127.0.0.1:8080", admin, "127.0.0.1:9090"),
		own:   strings.NewReplacer("127.0.0.1:8080", api),
	}
	k.cmd = exec.Command("bin/kvasir", "--listen", api, "--admin", admin, "--log-format", "pretty")
	log, err := k.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := k.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start Kvasir (make build): %w", err)
	}
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		line := k.ports.Replace(colour.ReplaceAllString(lines.Text(), ""))
		k.started = append(k.started, chunk{time.Since(begin), line + "\n"})
		if strings.Contains(line, "try it:") {
			go func() {
				for lines.Scan() { // so that it never waits for us
				}
			}()
			return k, nil
		}
	}
	return nil, errors.Join(errors.New("cannot record: it ended before it served"), k.cmd.Wait())
}

var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

func (k *kvasir) stop() {
	_ = k.cmd.Process.Signal(syscall.SIGTERM)
	_ = k.cmd.Wait()
}

// run runs a command and notes when it prints what.
func (k *kvasir) run(command string) ([]chunk, error) {
	cmd := exec.Command("bash", "-c", "set -o pipefail\n"+k.own.Replace(command))
	// explain asks the Kvasir that serves the configuration: by its variable, this one.
	cmd.Env = append(os.Environ(), "KVASIR_SERVER_ADMIN="+k.admin)
	seen := &recorder{begin: time.Now()}
	cmd.Stdout, cmd.Stderr = seen, seen
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, seen.all.String())
	}
	for i := range seen.chunks {
		seen.chunks[i].text = k.ports.Replace(strings.ReplaceAll(seen.chunks[i].text, "\r", ""))
	}
	return seen.chunks, nil
}

// A recorder notes when it is written to.
type recorder struct {
	begin  time.Time
	mu     sync.Mutex // guards what follows
	chunks []chunk
	all    bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.chunks = append(r.chunks, chunk{time.Since(r.begin), string(p)})
	return r.all.Write(p)
}

// freePort is an address that nobody listens on now.
func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
