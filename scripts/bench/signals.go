//go:build linux

// Signals: the cost of classification through the proxy, with every signal on, compared with
// every feature off.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// allSignals has both guards, and decisions that ask for every signal. No decision holds, so the
// request is not changed and the worker does the same work.
const allSignals = `classify: {jailbreak: {action: block}, pii: {action: block, allow: [PERSON, GPE, ORGANIZATION, NRP, TITLE, AGE, DATE_TIME, STREET_ADDRESS, DOMAIN_NAME]}}
signals:
  - {name: words, keywords: [zyzzyva, quetzal]}
  - {name: near, phrases: [I want my money back], threshold: 0.99}
  - {name: long, tokens: {min: 1000000}}
  - {name: agent, conversation: {tools: {min: 100}}}
  - {name: code, structure: {code_blocks: {min: 100}}}
decisions:
  - name: all
    applies_to: all
    when:
      all:
        - any: [{category: history}, {keyword: words}, {embedding: near}, {context: long}, {conversation: agent}, {structure: code}, {language: sw}, {complexity: hard}]
        - {model: never}
    refuse: "BUG: this decision cannot hold"
`

// askedScript posts a chat each time; QUESTION is replaced by random words, so that no result of
// an earlier request can be reused.
const askedScript = `local words = {"river","engine","garden","teacher","window","market","island","kettle","bridge","doctor","forest","camera","winter","pencil","station",
"village","mirror","harbour","ladder","candle","mountain","blanket","orchard","compass","lantern","theatre","library","kitchen","festival","bicycle"}
math.randomseed(tonumber(tostring({}):match("0x(%%x+)"), 16) %% 2147483647)
local function word() return words[math.random(#words)] end
local body = [==[%s]==]
request = function()
  local q = "Why is the " .. word() .. " near the " .. word() .. " older than the " .. word() .. " of the " .. word() .. " and its " .. word() .. "?"
  return wrk.format("POST", nil, {["Content-Type"]="application/json"}, (body:gsub("QUESTION", q)))
end
done = function(s, latency, requests)
  local e = s.errors
  io.write(string.format("BENCH %%d %%d %%d %%d %%d %%d\n", s.requests, s.duration, s.bytes,
    e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50), latency:percentile(99)))
end
`

func measureSignals(ctx context.Context, b *bench) error {
	dir, err := b.workDir("signals")
	if err != nil {
		return err
	}
	worker, err := startFastWorker(ctx, dir)
	if err != nil {
		return err
	}
	defer worker.stop()
	const off, on = "features off", "all signals on"
	var ways []*way
	defer func() { stopAll(ways) }()
	for _, name := range []string{off, on} {
		config := ""
		if name == on {
			config = allSignals + cacheOff
		}
		w, err := b.startKvasir(dir, name, worker.address, config)
		if err != nil {
			return err
		}
		ways = append(ways, w)
		if err := w.accepts(ctx); err != nil {
			return err
		}
	}
	const short = `{"model":"plain","messages":[{"role":"user","content":"QUESTION"}]}`
	t := table{title: "Judging, c=64", head: []string{"request", off + " req/s", on + " req/s", "ratio", off + " p50", on + " p50"}}
	for _, k := range []struct{ name, body string }{
		{"a short question, each different", short},
		{"2 KB, each different", strings.Replace(chat2K(), `"content":"The`, `"content":"QUESTION The`, 1)},
		{"2 KB, always the same", chat2K()},
	} {
		script := filepath.Join(dir, "asked.lua")
		if err := os.WriteFile(script, fmt.Appendf(nil, askedScript, strings.ReplaceAll(k.body, "%", "%%")), 0o644); err != nil {
			return fmt.Errorf("cannot write script of wrk: %w", err)
		}
		found, err := b.loadRounds(ctx, worker, ways, script, 64)
		if err != nil {
			return err
		}
		each := ratios(rates(found[on]), rates(found[off]))
		t.rows = append(t.rows, []string{k.name, fmt.Sprintf("%.0f", median(rates(found[off]))), fmt.Sprintf("%.0f", median(rates(found[on]))),
			fmt.Sprintf("%.2f x", median(each)), micros(median(latencies(found[off], false))), micros(median(latencies(found[on], false)))})
		if k.body == short {
			b.report.judge(verdict{"all signals on, c=64, short questions, against features off", fmt.Sprintf("%.2f x (rounds %s)", median(each), spread(each)), ">= 0.35 x", median(each) >= 0.35})
		} else {
			b.report.note("all signals on, c=64, "+k.name, fmt.Sprintf("%.2f x (rounds %s)", median(each), spread(each)))
		}
	}
	b.report.add(t)
	return nil
}

// The part of kvasirConfig that switches every feature off.
const (
	classifyOff = "classify: {jailbreak: {action: \"off\"}, pii: {action: \"off\"}}\n"
	cacheOff    = "cache: {store: \"off\"}\n"
)

// startKvasir starts Kvasir with every feature off, or with the given features instead.
func (b *bench) startKvasir(dir, name, worker, features string) (*way, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	admin, err := freeAddress()
	if err != nil {
		return nil, err
	}
	config := kvasirConfig(address, admin, worker, nil)
	if !strings.Contains(config, classifyOff+cacheOff) {
		panic("BUG: the configuration does not switch its features off")
	}
	if features != "" {
		config = strings.Replace(config, classifyOff+cacheOff, features, 1)
	}
	file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".yaml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, fmt.Errorf("cannot write config: %w", err)
	}
	w := &way{name: name, address: address, admin: admin}
	w.proc, err = startProcess(dir, "kvasir-"+strings.ReplaceAll(name, " ", "-"), nil, b.kvasir, "serve", "--config", file)
	return w, err
}
