//go:build linux

// Cache: the cost of a hit through the proxy, by equal text and by similarity, with the guards
// on.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// topics are the questions of this measurement: different enough that each has its own entry.
var topics = []string{
	"reset a forgotten password", "bake sourdough bread", "repair a flat bicycle tyre", "grow tomatoes on a balcony", "learn to play the cello",
	"remove red wine from a carpet", "write a letter of resignation", "train a puppy to sit", "prepare for a marathon", "tune a guitar by ear",
	"read a balance sheet", "sharpen a kitchen knife", "paint a wooden fence", "fold a fitted sheet", "plan a trip to Iceland", "knit a pair of socks",
	"install a dishwasher", "choose a telescope", "treat a bee sting", "organise a street party",
}

// Ways to ask about a topic: as stored, and rephrased.
const (
	asStored = "How do I TOPIC?"
	reworded = "Please tell me, how can I TOPIC?"
)

// hitScript asks about one topic after another.
const hitScript = `local topics = {%s}
local at = 0
request = function()
  at = at %% #topics + 1
  return wrk.format("POST", nil, {["Content-Type"]="application/json"},
    '{"model":"plain","messages":[{"role":"user","content":"' .. ("%s"):gsub("TOPIC", topics[at]) .. '"}]}')
end
done = function(s, latency, requests)
  local e = s.errors
  io.write(string.format("BENCH %%d %%d %%d %%d %%d %%d\n", s.requests, s.duration, s.bytes,
    e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50), latency:percentile(99)))
end
`

// shipped has the default guards and cache.
const shipped = "decisions: []\n"

func measureCache(ctx context.Context, b *bench) error {
	dir, err := b.workDir("cache")
	if err != nil {
		return err
	}
	worker, err := startFastWorker(ctx, dir)
	if err != nil {
		return err
	}
	defer worker.stop()
	w, err := b.startKvasir(dir, "cache", worker.address, shipped)
	if err != nil {
		return err
	}
	defer w.stop()
	if err := w.accepts(ctx); err != nil {
		return err
	}
	if err := fill(ctx, w); err != nil {
		return err
	}
	t := table{title: "Hits, guards as shipped", head: []string{"question", "c=1 p50", "c=1 p99", "c=64 hits/s", "c=64 p50", "c=64 p99"}}
	for _, k := range []struct{ name, form string }{{"the very same", asStored}, {"in other words", reworded}} {
		script := filepath.Join(dir, "hits.lua")
		text := fmt.Sprintf(hitScript, `"`+strings.Join(topics, `","`)+`"`, k.form)
		if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
			return fmt.Errorf("cannot write script of wrk: %w", err)
		}
		one, err := b.hits(ctx, worker, w, script, 1)
		if err != nil {
			return err
		}
		many, err := b.hits(ctx, worker, w, script, 64)
		if err != nil {
			return err
		}
		p50, perSec := median(latencies(one, false)), median(rates(many))
		t.rows = append(t.rows, []string{k.name, micros(p50), micros(median(latencies(one, true))), fmt.Sprintf("%.0f", perSec),
			micros(median(latencies(many, false))), micros(median(latencies(many, true)))})
		b.report.judge(verdict{"a hit, question " + k.name + ", end to end", "p50 " + micros(p50), "p50 <= 1 ms", p50 <= time.Millisecond})
		if k.form == asStored {
			b.report.judge(verdict{"hits, c=64, load generator on the same cores", fmt.Sprintf("%.0f/s", perSec), ">= 10000/s on 2 cores", perSec >= 10000})
		} else {
			b.report.note("hits in other words, c=64", fmt.Sprintf("%.0f/s", perSec))
		}
	}
	b.report.add(t)
	return nil
}

// hits measures rounds of load that the cache answers without the worker.
func (b *bench) hits(ctx context.Context, worker, w *way, script string, connections int) (found []load, err error) {
	wrk, err := findTool("wrk")
	if err != nil {
		return nil, err
	}
	for range b.rounds {
		before, err := served(worker)
		if err != nil {
			return nil, err
		}
		out, err := exec.CommandContext(ctx, wrk, "-t", strconv.Itoa(min(b.threads, connections)), "-c", strconv.Itoa(connections),
			"-d", strconv.Itoa(b.seconds), "-s", script, "http://"+w.address+"/v1/chat/completions").CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		after, err := served(worker)
		if err != nil {
			return nil, err
		}
		l, err := parseLoad(string(out))
		if err != nil {
			return nil, err
		}
		// Health probes and the counting itself reach the worker too.
		if asked := after - before; asked > b.seconds*20+10 {
			return nil, fmt.Errorf("the worker was asked %d times during %d hits", asked, l.requests)
		}
		found = append(found, l)
	}
	return found, nil
}

// fill asks every topic until its answer comes from the cache, in both forms.
func fill(ctx context.Context, w *way) error {
	deadline := time.Now().Add(30 * time.Second)
	for _, form := range []string{asStored, reworded} {
		for _, topic := range topics {
			body := `{"model":"plain","messages":[{"role":"user","content":"` + strings.ReplaceAll(form, "TOPIC", topic) + `"}]}`
			for {
				result, err := askCached(ctx, w.address, body)
				if err != nil {
					return err
				}
				if result == "hit" {
					break
				}
				if form == reworded {
					return fmt.Errorf("%q in other words is no hit", topic)
				}
				if time.Now().After(deadline) {
					return errors.New("the answers are not kept")
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	return nil
}

// askCached asks once and returns x-kvasir-cache.
func askCached(ctx context.Context, address, body string) (result string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("cannot ask: %w", err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20)); err != nil || res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("cannot use reply: status %d, %w: %s", res.StatusCode, err, text)
	}
	return res.Header.Get("x-kvasir-cache"), nil
}
