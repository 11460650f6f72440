//go:build linux

// Placement: the cost of choosing a worker by the prompt in the running proxy, compared with
// round robin.

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// placingConfig has simulated workers that answer at once, and every feature off except routing.
// Their tokens are not those of a real tokenizer, so prompts are divided into blocks of text.
const placingConfig = `server: {listen: "unix:%s", admin: ""}
simulate: [%s]
models: [{name: sim, default: true, tokenizer: none}]
routing: {policy: %s, disaggregate: never}
` + classifyOff + cacheOff + `gpu: {mode: "off"}
log: {level: warn}
`

const placingWorkers = 16

// placingSamples is how many requests of each kind each policy gets.
const placingSamples = 1000

func measurePlacement(ctx context.Context, b *bench) error {
	if b.under != "kvasir" {
		b.report.note("placement", b.under+" has none")
		return nil
	}
	dir, err := b.workDir("placement")
	if err != nil {
		return err
	}
	asker := newAsker()
	policies := []string{"predict", "round_robin"}
	var ways []*way
	defer func() { stopAll(ways) }()
	for _, policy := range policies {
		w, err := b.startPlacing(dir, policy)
		if err != nil {
			return err
		}
		ways = append(ways, w)
		client := w.client()
		defer client.CloseIdleConnections()
		if err := w.proc.ready(ctx, 20*time.Second, 10*time.Millisecond, func() error {
			_, err := placed(ctx, client, w, asker.fresh())
			return err
		}); err != nil {
			return err
		}
	}
	t := table{
		title: "Placement among 16 simulated workers, prompts of 8 KB",
		head:  []string{"prompt", "predict, overhead p50", "p99", "round_robin, overhead p50", "p99", "difference of each pair, median"},
		notes: []string{"Overhead is x-kvasir-overhead-us: all of the time to the first byte that is no waiting for the worker. Every prompt goes to both, one after the other, the order turned each time. Prompts are cut into blocks by their text: what tokens cost is not in it (go test ./proxy -run none -bench Placement has that)."},
	}
	for _, kind := range []struct {
		name string
		body func() string
	}{{"all new", asker.fresh}, {"all but the last turn known", asker.turn}} {
		took, err := comparePlacing(ctx, ways, kind.body)
		if err != nil {
			return err
		}
		var more []time.Duration
		for i, d := range took[0] {
			more = append(more, d-took[1][i])
		}
		// quantile sorts the samples, so it is called only after the pairs were compared.
		p50, p99, base, base99 := quantile(took[0], 0.5), quantile(took[0], 0.99), quantile(took[1], 0.5), quantile(took[1], 0.99)
		t.rows = append(t.rows, []string{kind.name, micros(p50), micros(p99), micros(base), micros(base99), micros(median(more))})
		b.report.judge(verdict{"placement over round robin, 8 KB, 16 workers, " + kind.name, fmt.Sprintf("p50 %s, p99 %s", micros(p50-base), micros(p99-base99)), "p99 <= 200 us", p99-base99 <= 200*time.Microsecond})
	}
	b.report.add(t)
	return nil
}

// startPlacing starts Kvasir with simulated workers of its own.
func (b *bench) startPlacing(dir, policy string) (*way, error) {
	// A port that is free now may be the next simulated worker's.
	socket := filepath.Join(dir, policy+".sock")
	workers := make([]string, placingWorkers)
	for i := range workers {
		workers[i] = fmt.Sprintf("{name: w%d, speedup: 1000}", i)
	}
	file := filepath.Join(dir, policy+".yaml")
	config := fmt.Sprintf(placingConfig, socket, strings.Join(workers, ", "), policy)
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, fmt.Errorf("cannot write config: %w", err)
	}
	w := &way{name: policy, address: socket}
	var err error
	w.proc, err = startProcess(dir, "kvasir-"+policy, nil, b.kvasir, "serve", "--config", file)
	return w, err
}

// client returns a client for a way whose address is the path of a socket.
func (w *way) client() *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", w.address)
	}
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: dial}}
}

// comparePlacing sends the same requests to both ways, in turn, and returns the overhead of each
// request on each way. The first tenth is warm-up.
func comparePlacing(ctx context.Context, ways []*way, body func() string) (took [2][]time.Duration, err error) {
	var clients [2]*http.Client
	for i, w := range ways {
		clients[i] = w.client()
		defer clients[i].CloseIdleConnections()
	}
	for i := range placingSamples * 11 / 10 {
		text := body()
		for k := range ways {
			at := (i + k) % len(ways)
			overhead, err := placed(ctx, clients[at], ways[at], text)
			if err != nil {
				return took, fmt.Errorf("cannot ask under %s: %w", ways[at].name, err)
			}
			if i >= placingSamples/10 {
				took[at] = append(took[at], overhead)
			}
		}
	}
	return took, nil
}

// placed sends one request and returns its overhead. Under predict, a placement that did not use
// the prompt is an error.
func placed(ctx context.Context, client *http.Client, w *way, body string) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://kvasir/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err := want200(res.StatusCode, text, err); err != nil {
		return 0, err
	}
	blocks, _ := strconv.Atoi(res.Header.Get("x-kvasir-prompt-blocks"))
	if w.name == "predict" && blocks < 10 {
		return 0, fmt.Errorf("a prompt of 8 KB has %d blocks", blocks)
	}
	us, err := strconv.Atoi(res.Header.Get("x-kvasir-overhead-us"))
	if err != nil {
		return 0, fmt.Errorf("cannot read x-kvasir-overhead-us: %w", err)
	}
	return time.Duration(us) * time.Microsecond, nil
}

// asker makes prompts of 8 KB from random words, the same in each run.
type asker struct {
	random *rand.Rand
	known  []string // all but the last turn of some conversations
	at     int
}

var plainWords = strings.Fields("the of and a to in is you that it he was for on are as with his they I at be this have from or one had by word but not what all were we when your can said")

func newAsker() *asker {
	a := &asker{random: rand.New(rand.NewPCG(1, 2))}
	for range 64 {
		a.known = append(a.known, `{"model":"sim","max_tokens":1,"messages":[{"role":"system","content":"`+a.text(2000)+`"},{"role":"user","content":"`+a.text(5500)+
			`"},{"role":"assistant","content":"`+a.text(300)+`"},{"role":"user","content":"`)
	}
	return a
}

func (a *asker) text(n int) string {
	var t strings.Builder
	for t.Len() < n {
		t.WriteString(plainWords[a.random.IntN(len(plainWords))])
		t.WriteByte(' ')
	}
	return t.String()
}

func (a *asker) fresh() string {
	return `{"model":"sim","max_tokens":1,"messages":[{"role":"user","content":"` + a.text(8000) + `"}]}`
}

func (a *asker) turn() string {
	a.at++
	return a.known[a.at%len(a.known)] + a.text(200) + `"}]}`
}
