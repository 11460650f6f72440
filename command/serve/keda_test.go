// Tests of KEDA asking while there is planning.

package serve

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"kvasir/config"
	"kvasir/planner"
	"kvasir/planner/keda"
	"kvasir/proxy"
)

// empty is a codec of messages that have nothing in them.
type empty struct{}

func (empty) Name() string                { return "proto" }
func (empty) Marshal(any) ([]byte, error) { return nil, nil }
func (empty) Unmarshal([]byte, any) error { return nil }

// KEDA may ask before the first plan and while it is told: go test -race sees whether it reads what is written then.
func TestKEDAAsksBeforeThePlan(t *testing.T) {
	p, err := proxy.New(zerolog.Nop(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	for range 20 {
		askWhileTold(t, p)
	}
}

func askWhileTold(t *testing.T, p *proxy.Proxy) {
	k := keda.New(nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- k.Serve(l) }()
	c := &config.Config{Planner: config.Planner{Mode: "advise", Interval: time.Hour, Window: time.Minute, Memory: 1 << 16}}
	g := startPlanning(zerolog.Nop(), c, p, k)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(empty{})))
	if err != nil {
		t.Fatal(err)
	}
	first, ended, stop := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			_ = conn.Invoke(t.Context(), "/externalscaler.ExternalScaler/IsActive", nil, nil)
			if n == 0 {
				close(first)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	<-first
	for range 100 {
		runtime.Gosched()
	}
	g.tell(&planner.Report{Model: "m"})
	close(stop)
	<-ended
	g.close()
	_ = conn.Close()
	k.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
