// Tests of what is counted only while other systems' names are asked for.

package proxy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"kvasir/classify"
	"kvasir/edge"
	"kvasir/openai"
	"kvasir/openai/answer"
	"kvasir/proxy/compatible"
)

func everyName(s *Settings) *Settings {
	s.Compatible, s.Currency = compatible.Systems(), "USD"
	return s
}

// TestCompatibleNames: requests of each kind are told by the names of all systems.
func TestCompatibleNames(t *testing.T) {
	good := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	p := startProxy(t, everyName(guarded(classify.Block, good.url)))
	p.ask(t, "/v1/chat/completions", plainChat)
	p.ask(t, "/v1/chat/completions", plainChat)
	p.ask(t, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"my card is 4111 1111 1111 1111, ok?"}]}`)
	p.ask(t, "/v1/chat/completions", `{"model":"made up","messages":[{"role":"user","content":"hi"}]}`)
	p.ask(t, "/v1/chat/completions", `{`)
	const frontend = `dynamo_frontend_requests_total{endpoint="chat_completions",error_type=%q,model=%q,request_type="unary",status=%q}`
	const operation = `gen_ai_client_operation_duration_seconds{error_type=%q,gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model=%q}`
	p.has(t, map[string]float64{
		fmt.Sprintf(frontend, "", "m", "success"):             2,
		fmt.Sprintf(frontend, "validation", "m", "error"):     1,
		fmt.Sprintf(frontend, "not_found", "_other", "error"): 1,
		fmt.Sprintf(operation, "", "m"):                       2,
		fmt.Sprintf(operation, "blocked", "m"):                1,
		fmt.Sprintf(operation, "model_not_found", "_other"):   1,

		`dynamo_frontend_request_duration_seconds{model="m"}`:                    3,
		`dynamo_frontend_active_requests`:                                        0,
		`llm_model_requests_total{model="m"}`:                                    2,
		`llm_model_completion_latency_seconds{model="m"}`:                        2,
		`llm_request_errors_total{model="m",reason="pii_policy_denied"}`:         1,
		`llm_pii_violations_total{model="m",pii_type="CREDIT_CARD"}`:             1,
		`llm_routing_reason_codes_total{model="m",reason_code="security_block"}`: 1,
		`llm_classifier_latency_seconds{classifier="pii"}`:                       4,
	})
	for name := range seriesOf(t, p) {
		if strings.HasPrefix(name, compatible.Requests+"{") || strings.HasPrefix(name, compatible.Seconds+"{") {
			t.Errorf("%s is shown", name)
		}
	}
}

// TestCompatibleTokens: what workers count, and the times of a stream's events.
func TestCompatibleTokens(t *testing.T) {
	w := startWorker(t, send(streamHead+chunk(roleEvent)+chunk(delta("a"))+chunk(delta("b"))+chunk(delta("c"))+chunk(finishEvent)+chunk(usageEvent)+chunk(doneEvent)+"0\r\n\r\n"))
	s := everyName(settingsFor(w.url))
	s.Models[0].Price = Price{Prompt: 2, Completion: 10, Cached: -1}
	p := startProxy(t, s)
	p.ask(t, "/v1/chat/completions", streamChat)
	const chat = `gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="m"`
	p.has(t, map[string]float64{
		`gen_ai_client_operation_time_to_first_chunk_seconds{` + chat + `}`:   1,
		`gen_ai_client_operation_time_per_output_chunk_seconds{` + chat + `}`: 5, // of a role, three of text, the end and the usage
		`gen_ai_client_token_usage{` + chat + `,gen_ai_token_type="input"}`:   1,
		`gen_ai_client_token_usage{` + chat + `,gen_ai_token_type="output"}`:  1,
		`dynamo_frontend_time_to_first_token_seconds{model="m"}`:              1,
		`dynamo_frontend_inter_token_latency_seconds{model="m"}`:              5,
		`llm_model_ttft_seconds{model="m"}`:                                   1,
		`llm_model_tpot_seconds{model="m"}`:                                   1,
		`llm_prompt_tokens_per_request{model="m"}`:                            1,
	})
	got := seriesOf(t, p)
	prompt, completion := got[`kvasir_tokens_total{model="m",type="prompt"}`], got[`kvasir_tokens_total{model="m",type="completion"}`]
	if prompt == 0 || completion == 0 || got[`llm_model_tokens_total{model="m"}`] != prompt+completion ||
		got[`llm_model_cost_total{currency="USD",model="m"}`] != (prompt*2+completion*10)/1e6 {
		t.Errorf("%v tokens of prompts and %v of answers are told as %v", prompt, completion, got)
	}
}

// TestErrorsHaveNoFirstToken: a worker that refuses a stream at once made no first token, let alone a fast one.
func TestErrorsHaveNoFirstToken(t *testing.T) {
	w := startWorker(t, send(httpReply(400, "application/json", `{"error":{"message":"no","type":"BadRequestError","code":400}}`)))
	p := startProxy(t, everyName(settingsFor(w.url)))
	p.ask(t, "/v1/chat/completions", streamChat)
	p.has(t, map[string]float64{`llm_request_errors_total{model="m",reason="upstream_4xx"}`: 1})
	for name := range seriesOf(t, p) {
		if strings.Contains(name, "first") && !strings.HasPrefix(name, "kvasir_") || strings.HasPrefix(name, "llm_model_ttft") {
			t.Errorf("%s is shown", name)
		}
	}
}

// TestNoCompatibleNames: without metrics.compatible nothing is counted by model and no other name is shown; a
// reload begins with it, and ends it.
func TestNoCompatibleNames(t *testing.T) {
	w := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	p := startProxy(t, settingsFor(w.url))
	others := func() (names []string) {
		for name := range seriesOf(t, p) {
			for _, prefix := range []string{"dynamo_", "llm_", "gen_ai_"} {
				if strings.HasPrefix(name, prefix) {
					names = append(names, name)
				}
			}
		}
		return names
	}
	p.ask(t, "/v1/chat/completions", plainChat)
	p.has(t, map[string]float64{`kvasir_requests_total{code="200",route="/v1/chat/completions"}`: 1})
	if names := others(); len(names) > 0 {
		t.Errorf("there are %v", names)
	}
	apply := func(s *Settings) {
		t.Helper()
		if err := p.Apply(s); err != nil {
			t.Fatal(err)
		}
	}
	apply(everyName(settingsFor(w.url)))
	p.ask(t, "/v1/chat/completions", plainChat)
	p.has(t, map[string]float64{`llm_model_requests_total{model="m"}`: 1})
	genAI := settingsFor(w.url)
	genAI.Compatible = []string{"genai"}
	apply(genAI)
	if names := others(); len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return !strings.HasPrefix(n, "gen_ai_") }) {
		t.Errorf("there are %v", names)
	}
	apply(settingsFor(w.url))
	if names := others(); len(names) > 0 {
		t.Errorf("there are %v", names)
	}
}

// Counting by model takes no allocation either.
func TestAllocationsWithCompatibleNames(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, and empties pools at random")
	}
	once, done := wayOf(t, plainChat, func(s *Settings) {
		everyName(s)
		s.Models[0].Price = Price{Prompt: 1, Completion: 2, Cached: 0.1}
	})
	defer done()
	if got, _ := allocationsOf(t, once); got > allocsPerRequest+0.5 {
		t.Errorf("%.2f allocations a request, want %d", got, allocsPerRequest)
	}
}

// BenchmarkNote is what a request that has ended costs the log and the metrics.
func BenchmarkNote(b *testing.B) {
	w := startWorker(b, send(httpReply(200, "application/json", chatReply)))
	for name, change := range map[string]func(*Settings){"plain": func(*Settings) {}, "names of others": func(s *Settings) { everyName(s) }} {
		b.Run(name, func(b *testing.B) {
			s := settingsFor(w.url)
			change(s)
			p := startProxy(b, s)
			quiet := accessLog{log: zerolog.Nop(), metrics: p.metrics}
			x := &exchange{p: p.Proxy, conn: &edge.Conn{}, byStatus: make(statusMetrics, 600), backend: p.state.Load().ordered[0]}
			x.plan.state, x.plan.route, x.plan.model = p.state.Load(), &openai.Routes[0], "m"
			x.facts.status, x.facts.total, x.facts.firstByte, x.facts.overhead = 200, time.Second, time.Millisecond, time.Microsecond
			x.facts.usage = answer.Usage{Prompt: 100, Completion: 10, Cached: 64}
			b.ReportAllocs()
			for b.Loop() {
				quiet.note(x)
			}
		})
	}
}

// TestLateWorkers: what a worker does after a reload has dropped it brings no series of it back. Names of workers
// that a source finds are ever new ones.
func TestLateWorkers(t *testing.T) {
	gone, stays := startWorker(t, send(httpReply(200, "application/json", chatReply))), startWorker(t, send(httpReply(200, "application/json", chatReply)))
	p := startProxy(t, everyName(settingsFor(gone.url, stays.url)))
	old := p.state.Load()
	if err := p.Apply(everyName(settingsFor(stays.url))); err != nil {
		t.Fatal(err)
	}
	now := p.state.Load()
	for _, b := range old.ordered {
		p.workerFailed(b, time.Now(), "connect")
		p.metrics.operations.notePrefill(now, b.Name(), 1)
	}
	for name := range seriesOf(t, p) {
		worker := regexp.MustCompile(`worker(?:_id)?="(.*?)"`).FindStringSubmatch(name)
		if worker != nil && !now.has(worker[1]) {
			t.Errorf("%s is there", name)
		}
	}
	kept := now.ordered[0].Name()
	p.has(t, map[string]float64{
		fmt.Sprintf(`kvasir_worker_failures_total{reason="connect",worker=%q}`, kept): 1,
		fmt.Sprintf(`dynamo_worker_prefill_latency_ms{worker_id=%q}`, kept):           1,
	})
}

func TestReusedLately(t *testing.T) {
	var l reusedLately
	if _, ok := l.share(); ok {
		t.Error("there is a share before a request")
	}
	now := time.Unix(1000, 0)
	l.note(now, 10, 10)
	l.note(now.Add(time.Minute), 0, 5) // the first one counts for five blocks by now
	if got, _ := l.share(); got != 0.5 {
		t.Errorf("the share is %v, want 0.5", got)
	}
	l.note(now, 0, 0) // clocks that go back do no harm
	if got, _ := l.share(); got != 0.5 {
		t.Errorf("the share is %v, want 0.5", got)
	}
}
