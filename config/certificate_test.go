// Tests of workers' certificates: what is read, and what counts as the same between two generations.

package config

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvasir/config/certtest"
)

func TestWorkerTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	worker := certtest.Write(t, at("worker.pem"), at("worker.key"), "worker", nil)
	certtest.Write(t, at("mine.pem"), at("mine.key"), "mine", worker)
	write(t, at("config.yaml"), `workers:
  - {name: a, url: "https://127.0.0.1:1", tls: {ca: worker.pem, cert: mine.pem, key: mine.key}}
  - {name: b, url: "https://127.0.0.1:2", tls: {ca: worker.pem, cert: mine.pem, key: mine.key}}
  - {name: c, url: "https://127.0.0.1:3", tls: {ca: worker.pem}}
  - {name: d, url: "https://127.0.0.1:4"}
`)
	l := &Layers{File: at("config.yaml")}
	g, read, err := l.Load()
	do(t, err)
	w := g.Workers
	if w[0].TLSName != w[1].TLSName || w[0].TLSName == w[2].TLSName || w[3].TLSName != "" || w[3].TLS != nil {
		t.Errorf("TLS names are %q, %q, %q, %q", w[0].TLSName, w[1].TLSName, w[2].TLSName, w[3].TLSName)
	}
	if len(read) != 4 {
		t.Errorf("read were %v", read)
	}

	// The worker asks for a certificate that its own has signed.
	ask := &tls.Config{Certificates: []tls.Certificate{*worker}, ClientAuth: tls.RequireAnyClientCert}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", ask)
	do(t, err)
	defer ln.Close()
	shown := make(chan string, 1)
	go accept(ln, shown)
	conn, err := tls.Dial("tcp", ln.Addr().String(), w[0].TLS)
	do(t, err)
	conn.Close()
	if got := <-shown; got != "mine" {
		t.Errorf("we showed %q", got)
	}

	// New content under the same name is another TLS; a pair that does not
	// fit is refused.
	certtest.Write(t, at("mine.pem"), at("mine.key"), "mine", worker)
	g, _, err = l.Load()
	do(t, err)
	if g.Workers[0].TLSName == w[0].TLSName || g.Workers[2].TLSName != w[2].TLSName {
		t.Error("the TLS name does not follow the content of the files")
	}
	certtest.Write(t, at("other.pem"), at("mine.key"), "other", worker)
	if _, _, err = l.Load(); err == nil || !strings.Contains(err.Error(), "config.yaml:2:71: workers[0].tls.cert: cannot use certificate") {
		t.Errorf("error is %v", err)
	}
}

// accept takes one connection and says what certificate the client showed.
func accept(ln net.Listener, shown chan<- string) {
	conn, err := ln.Accept()
	if err != nil {
		shown <- err.Error()
		return
	}
	defer conn.Close()
	server := conn.(*tls.Conn)
	if err := server.Handshake(); err != nil {
		shown <- err.Error()
		return
	}
	shown <- server.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func write(t *testing.T, file, text string) {
	t.Helper()
	do(t, os.WriteFile(file, []byte(text), 0o600))
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
