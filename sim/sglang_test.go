// SGLang's API and its hand-over between two simulated workers over HTTP.

package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSGLangWire sends every recorded request and compares the reply with SGLang's, as TestWire
// does.
func TestSGLangWire(t *testing.T) {
	requests, err := filepath.Glob("testdata/sglang/*.request")
	if err != nil || len(requests) < 20 {
		t.Fatalf("%d recorded requests: %v", len(requests), err)
	}
	address := start(t, Options{Engine: "sglang", Name: "w", Model: "tiny-qwen", BlockSize: 32, MaxModelLen: 4096, Speedup: 1000})
	count := regexp.MustCompile(`The input \(\d+ tokens\)`) // counted by another tokenizer
	for _, path := range requests {
		name := strings.TrimSuffix(filepath.Base(path), ".request")
		t.Run(name, func(t *testing.T) {
			got := parseReply(t, exchange(t, address, readFile(t, path)))
			want := parseReply(t, readFile(t, strings.TrimSuffix(path, ".request")+".response"))
			got.body, want.body = count.ReplaceAllString(got.body, "The input (N tokens)"), count.ReplaceAllString(want.body, "The input (N tokens)")
			compareReplies(t, name, got, want)
		})
	}
}

// rendezvous is a pair of SGLang workers.
type rendezvous struct {
	*pair
	port int
	room int64
}

func newRendezvous(t *testing.T, p, d Options) *rendezvous {
	t.Helper()
	p.Engine, d.Engine = "sglang", "sglang"
	x := &rendezvous{pair: newPair(t, p, d), room: 1<<62 + 7}
	var info struct {
		Mode string `json:"disaggregation_mode"`
		Port int    `json:"disaggregation_bootstrap_port"`
	}
	reply := parseReply(t, exchange(t, x.pa, []byte("GET /get_server_info HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n\r\n")))
	if err := json.Unmarshal([]byte(reply.body), &info); err != nil || info.Mode != "prefill" || info.Port == 0 {
		t.Fatalf("%v in %s", err, reply.body)
	}
	x.port = info.Port
	return x
}

// at returns the request fields of the room.
func (x *rendezvous) at() string {
	return fmt.Sprintf(`"bootstrap_host":"127.0.0.1","bootstrap_port":%d,"bootstrap_room":%d`, x.port, x.room)
}

// leg sends a request and delivers its reply on the channel.
func (x *rendezvous) leg(address, path, body string) chan reply {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		x.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Write(rawPost(path, body, "Connection: close")); err != nil {
		x.t.Fatal(err)
	}
	out := make(chan reply, 1)
	go func() {
		raw, err := io.ReadAll(conn)
		conn.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) || len(raw) == 0 {
			out <- reply{status: fmt.Sprintf("none: %v", err)}
			return
		}
		out <- parseReply(x.t, raw)
	}()
	return out
}

func TestRendezvous(t *testing.T) {
	x := newRendezvous(t, Options{}, Options{})
	for i, first := range []string{x.pa, x.da, x.pa} {
		second := x.da
		if first == x.da {
			second = x.pa
		}
		x.room++
		name := fmt.Sprintf("Meet %d.", i)
		body := x.ask(name, `"max_tokens":24,`+x.at())
		one := x.leg(first, chat, body)
		if first == x.da {
			until(t, "the decode leg waits", func() bool { return stats(x.d).Loading == 1 })
		} else {
			until(t, "the prefill leg waits", func() bool { x.p.rooms.mu.Lock(); defer x.p.rooms.mu.Unlock(); return len(x.p.rooms.met) == 1 })
			if st := stats(x.p); st.Running+st.Waiting+st.ActiveBlocks != 0 {
				t.Errorf("it computes before the decode leg is there: %+v", st)
			}
		}
		two := x.leg(second, chat, body)
		replies := map[string]reply{first: <-one, second: <-two}
		if p := replies[x.pa]; p.status != "200 OK" || !strings.Contains(p.body, `"completion_tokens":1,`) {
			t.Errorf("the prefill leg says %s %s", p.status, p.body)
		}
		o := x.d.options
		o.Role = "both"
		alone := start(t, o)
		want := textOf(t, parseReply(t, post(t, alone, chat, x.ask(name, `"max_tokens":24`))))
		if got := textOf(t, replies[x.da]); got != want {
			t.Errorf("the hand-over gives %q, one server %q", got, want)
		}
		x.idle()
	}
	if n := len(x.p.rooms.met); n != 0 {
		t.Errorf("%d rooms are left", n)
	}
}

// A prompt that was prefilled before: both legs report it.
func TestRendezvousCachedTokens(t *testing.T) {
	x := newRendezvous(t, Options{}, Options{})
	for i, want := range []bool{false, true} {
		x.room++
		body := x.ask("Cached.", `"max_tokens":4,`+x.at())
		p, d := x.leg(x.pa, chat, body), x.leg(x.da, chat, strings.Replace(body, `"max_tokens"`, `"stream":true,"stream_options":{"include_usage":true},"max_tokens"`, 1))
		cached := regexp.MustCompile(`"cached_tokens":[1-9]`)
		if got := cached.MatchString((<-p).body); got != want {
			t.Errorf("%d: prefill: cached is %v", i, got)
		}
		r := <-d
		if got := cached.MatchString(r.body); got != want || !r.ended {
			t.Errorf("%d: decode: cached is %v in %s", i, got, r.body)
		}
	}
	x.idle()
}

func TestRendezvousOfABatch(t *testing.T) {
	x := newRendezvous(t, Options{}, Options{})
	prompts := `"prompt":["` + strings.Repeat("one ", 50) + `","` + strings.Repeat("two ", 70) + `","three"],"max_tokens":6`
	for _, rooms := range []string{
		`"bootstrap_host":"127.0.0.1","bootstrap_port":PORT,"bootstrap_room":70`,
		`"bootstrap_host":["127.0.0.1","127.0.0.1","127.0.0.1"],"bootstrap_port":[PORT,PORT,PORT],"bootstrap_room":[9,5,9223372036854775807]`,
		`"bootstrap_host":"127.0.0.1","bootstrap_port":PORT,"bootstrap_room":80,"n":2`,
	} {
		body := `{` + prompts + `,` + strings.ReplaceAll(rooms, "PORT", itoa(x.port)) + `}`
		p, d := x.leg(x.pa, "/v1/completions", body), x.leg(x.da, "/v1/completions", body)
		pr, dr := <-p, <-d
		choices := 3
		if strings.Contains(rooms, `"n":2`) {
			choices = 6
		}
		if pr.status != "200 OK" || dr.status != "200 OK" || strings.Count(dr.body, `"index":`) != choices {
			t.Errorf("%s: %s %s, %s %s", rooms, pr.status, pr.body, dr.status, dr.body)
		}
		x.idle()
	}
	for rooms, status := range map[string]string{
		`"bootstrap_room":[1,2]`:                          "400 Bad Request",
		`"bootstrap_room":[]`:                             "400 Bad Request",
		`"bootstrap_room":"a"`:                            "400 Bad Request",
		`"bootstrap_room":1.5`:                            "400 Bad Request",
		`"bootstrap_room":-4`:                             "400 Bad Request",
		`"bootstrap_room":9223372036854775806`:            "400 Bad Request", // counts up past the last
		`"bootstrap_room":9223372036854775808`:            "400 Bad Request",
		`"bootstrap_room":1,"bootstrap_port":[1]`:         "400 Bad Request",
		`"bootstrap_room":1,"bootstrap_port":70000`:       "400 Bad Request",
		`"bootstrap_room":1,"bootstrap_host":7`:           "400 Bad Request",
		`"bootstrap_room":null,"bootstrap_host":"a.host"`: "400 Bad Request",
		`"rid":"me"`: "400 Bad Request",
	} {
		r := parseReply(t, post(t, x.da, "/v1/completions", `{`+prompts+`,`+rooms+`}`))
		if r.status != status || !strings.HasPrefix(r.body, `{"object":"error","message":"`) {
			t.Errorf("%s: %s %s", rooms, r.status, r.body)
		}
	}
	got := parseReply(t, post(t, x.pa, chat, hello(`"rid":"me"`))).body
	if got != `{"object":"error","message":"Invalid request: Disaggregated request received without bootstrap room id. `+
		`req.rid='me'","type":"BadRequestError","param":null,"code":400}` {
		t.Error(got)
	}
}

// If the other leg never enters the room, each leg ends with SGLang's message.
func TestRendezvousNeverMet(t *testing.T) {
	short := Options{BootstrapTimeout: 50 * time.Millisecond}
	x := newRendezvous(t, short, short)
	id := strconv.FormatInt(x.room, 10)
	for address, want := range map[string]string{
		x.pa: `Prefill bootstrap failed for request rank=0 req.rid='me' req.bootstrap_room=` + id +
			` with exception KVTransferError(bootstrap_room=` + id + `): Request ` + id + ` timed out after 0.1s in KVPoll.Bootstrapping`,
		x.da: `Decode transfer failed for request rank=0 decode_req.req.rid='me' decode_req.req.bootstrap_room=` + id +
			` with exception KVTransferError(bootstrap_room=` + id + `): Request ` + id + ` timed out after 0.1s in KVPoll.WaitingForInput`,
	} {
		want = `{"object":"error","message":"` + want + `","type":"500","param":null,"code":500}`
		r := <-x.leg(address, chat, x.ask("Alone.", `"rid":"me",`+x.at()))
		if r.status != "500 Internal Server Error" || r.body != want {
			t.Errorf("%s %s, want %s", r.status, r.body, want)
		}
		r = <-x.leg(address, chat, x.ask("Alone.", `"stream":true,"rid":"me",`+x.at()))
		if len(r.events) != 2 || r.events[0] != `data: {"error":`+want+"}\n\n" || !r.ended {
			t.Errorf("streamed: %q", r.events)
		}
	}
	x.idle()
}

// Two requests in one room crash the worker that gets both.
func TestRendezvousRoomTwice(t *testing.T) {
	for _, role := range []string{"prefill", "decode"} {
		x := newRendezvous(t, Options{}, Options{})
		address, s := x.pa, x.p
		if role == "decode" {
			address, s = x.da, x.d
		}
		body := x.ask("Twice.", x.at())
		one, two := x.leg(address, chat, body), x.leg(address, chat, body)
		for _, r := range []reply{<-one, <-two} {
			if !strings.HasPrefix(r.status, "500") && !strings.HasPrefix(r.status, "none") {
				t.Errorf("%s: %s %s", role, r.status, r.body)
			}
		}
		if !s.isDead() {
			t.Errorf("the %s worker lives", role)
		}
	}
}

func TestRendezvousLostClient(t *testing.T) {
	t.Run("decode", func(t *testing.T) {
		x := newRendezvous(t, Options{Speedup: 0.001}, Options{})
		body := x.ask("Lost.", `"rid":"me",`+x.at())
		p := x.leg(x.pa, chat, body)
		conn := x.open(x.da, body)
		until(t, "the prefill runs", func() bool { return stats(x.p).Running == 1 })
		conn.Close()
		r := <-p
		if r.status != "500 Internal Server Error" || !strings.Contains(r.body, "Prefill transfer failed for request rank=0 req.rid='me'") {
			t.Errorf("the prefill leg says %s %s", r.status, r.body)
		}
		x.idle()
	})
	t.Run("prefill", func(t *testing.T) {
		x := newRendezvous(t, Options{Speedup: 0.001}, Options{BootstrapTimeout: time.Second}) // the prefill ends within this timeout
		body := x.ask("Lost.", x.at())
		conn := x.open(x.pa, body)
		d := x.leg(x.da, chat, body)
		until(t, "the prefill runs", func() bool { return stats(x.p).Running == 1 })
		conn.Close()
		until(t, "the prefill worker is idle", func() bool { st := stats(x.p); return st.Running+st.ActiveBlocks+st.Held == 0 })
		if r := <-d; !strings.Contains(r.body, "timed out after 1.0s in KVPoll.WaitingForInput") {
			t.Errorf("the decode leg says %s %s", r.status, r.body)
		}
		x.idle()
	})
	t.Run("in the transfer", func(t *testing.T) {
		x := newRendezvous(t, Options{Speedup: 1000}, Options{Bandwidth: 1e-6, Speedup: 1})
		body := x.ask("Lost.", x.at())
		p := x.leg(x.pa, chat, body)
		conn := x.open(x.da, body)
		until(t, "the blocks are held", func() bool { return stats(x.p).Held == 1 })
		conn.Close()
		<-p
		x.idle()
	})
}

func TestRendezvousWithADeadHost(t *testing.T) {
	x := newRendezvous(t, Options{}, Options{TransferTimeout: 20 * time.Millisecond})
	x.p.Close()
	r := <-x.leg(x.da, chat, x.ask("Dead.", `"rid":"me",`+x.at()))
	want := "Could not fetch prefill parallel info from bootstrap_addr: 127.0.0.1:" + itoa(x.port) + `","type":"500","param":null,"code":500}`
	if r.status != "500 Internal Server Error" || !strings.HasSuffix(r.body, want) || !strings.Contains(r.body, "Decode handshake failed for request") {
		t.Errorf("%s %s", r.status, r.body)
	}
	until(t, "the decode worker is idle", func() bool { st := stats(x.d); return st.ActiveBlocks+st.Loading == 0 })
}

// Legs with different prompts give a wrong text, and no error.
func TestRendezvousOfTwoPrompts(t *testing.T) {
	x := newRendezvous(t, Options{}, Options{})
	p := x.leg(x.pa, chat, x.ask("One.", `"max_tokens":24,`+x.at()))
	r := <-x.leg(x.da, chat, x.ask("Two.", `"max_tokens":24,`+x.at()))
	<-p
	o := x.d.options
	o.Role = "both"
	if r.status != "200 OK" || textOf(t, r) == textOf(t, parseReply(t, post(t, start(t, o), chat, x.ask("Two.", `"max_tokens":24`)))) {
		t.Errorf("%s %s", r.status, r.body)
	}
}

func TestSGLangSmallRoutes(t *testing.T) {
	x := newRendezvous(t, Options{}, Options{})
	for _, c := range []struct{ address, path, want string }{
		{x.da, "/server_info", `"disaggregation_mode":"decode"`}, {x.da, "/get_model_info", `"disaggregation_mode":"decode"`},
		{x.da, "/server_info", `"page_size":32`}, {x.pa, "/metrics", `sglang:num_running_reqs{engine_type="prefill",model_name="tiny-qwen",`},
		{x.pa, "/metrics", `sglang:cache_config_info{num_pages="16384",page_size="32"} 1.0`},
		{start(t, Options{Engine: "sglang"}), "/server_info", `"disaggregation_mode":"null"`},
		{x.pa, "/health", "200 OK"},
	} {
		r := string(exchange(t, c.address, []byte("GET "+c.path+" HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n\r\n")))
		if !strings.Contains(r, c.want) {
			t.Errorf("%s: no %s in %s", c.path, c.want, r)
		}
	}
}

func FuzzRooms(f *testing.F) {
	f.Add([]byte(`[1,null,3]`), []byte(`8998`), []byte(`"h"`), 3, 2)
	f.Add([]byte(`9223372036854775807`), []byte(`null`), []byte(`["a"]`), 1, 1)
	f.Fuzz(func(t *testing.T, id, port, host []byte, prompts, choices int) {
		if prompts < 1 || prompts > 20 || choices < 1 || choices > 20 {
			return
		}
		fields := decodeFields(fmt.Appendf(nil, `{"bootstrap_room":%s,"bootstrap_port":%s,"bootstrap_host":%s}`, id, port, host))
		if fields.failure != nil {
			return
		}
		rooms := readRooms(Options{}, fields, prompts, choices)
		if fields.failure == nil && rooms != nil && len(rooms) != prompts*choices {
			t.Fatalf("%d rooms for %d answers", len(rooms), prompts*choices)
		}
		for _, r := range rooms {
			if r.id < 0 || r.port < 0 || r.port > 65535 {
				t.Fatalf("%+v", r)
			}
		}
	})
}
