// Hostile together: liars, bombs and endless interim replies at once, under a memory limit.

package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestHostileTogetherTakeMemory: 400 announced bodies took 5 GiB, 48 zstd bodies that ask for a window of 512 MiB as
// much again, 40 of half a kilobyte that unpack to 60,000 prompts each 10 MiB a piece, and a worker that sends 1xx without
// end 435 MiB a second. All at once they stay below 400 MiB, and
// ordinary questions are answered.
func TestHostileTogetherTakeMemory(t *testing.T) {
	w := httptest.NewServer(http.HandlerFunc(interimWorker))
	t.Cleanup(w.Close)
	k := serveIn(t, []string{"GOMEMLIMIT=460MiB"}, "gpu: {mode: \"off\"}\nmodels: [{name: sim, tokenizer: none, reasoning: none}]\n"+
		"workers: [{name: a, url: "+w.URL+", engine: openai}]\n", "sim")
	var attacks sync.WaitGroup
	attacks.Go(func() {
		for range 400 {
			k.liar(t, k.url, "/v1/chat/completions", 32<<20, 20<<10)
		}
	})
	for i := range 48 {
		attacks.Go(func() { k.bomb(i) })
	}
	crumbs := packedCrumbs(t)
	for range 40 {
		attacks.Go(func() {
			request := newPost(t, k.url+"/v1/completions", crumbs, "Content-Encoding: gzip")
			if r, err := http1.Do(request); err == nil {
				r.Body.Close()
			}
		})
	}
	attacks.Go(func() {
		body := chat(false, 5)
		for range 3 {
			request := newPost(t, k.url+"/v1/chat/completions", body, "X-Interim: endless")
			if r, err := http1.Do(request); err == nil {
				r.Body.Close()
			}
		}
	})
	for range 10 {
		eventually(t, patience, "an ordinary question is answered", func() bool {
			return post(t, k.url+"/v1/chat/completions", chat(false, 5)).status == http.StatusOK
		})
	}
	attacks.Wait()
	if most := k.memory(t, "VmHWM"); most >= 400 {
		t.Errorf("it took %d MiB", most)
	}
}

// packedCrumbs is a completion of 60,000 prompts of one letter, in half a kilobyte.
func packedCrumbs(t *testing.T) string {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, `{"model":"sim","max_tokens":1,"prompt":[`+strings.Repeat(`"a",`, 59999)+`"a"]}`) // to memory
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.String()
}

// bomb sends a zstd body: one that asks for a window of 512 MiB in 9 bytes, or one of 31 MiB of one letter.
func (k *kvasir) bomb(i int) {
	packed := []byte("\x28\xb5\x2f\xfd\x00\x98\x01\x00\x00")
	if i%2 == 1 { // a window of 8 MiB, and 248 blocks of 128 KiB of one byte each
		packed = append([]byte("\x28\xb5\x2f\xfd\x00\x68"), bytes.Repeat([]byte("\x02\x00\x10a"), 247)...)
		packed = append(packed, "\x03\x00\x10a"...)
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(k.url, "http://"))
	if err != nil {
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Encoding: zstd\r\nContent-Length: %d\r\n\r\n%s", len(packed), packed)
	c.Read(make([]byte, 4096))
}
