// Sockets by TCP and in the file system.

// Package listener opens the addresses that Kvasir listens on, and asks whoever
// listens there. An address is host:port or unix:/path, as config.CheckListen
// wants it.
//
//	ln, err := listener.Open("127.0.0.1:8080")
//	url, curlOptions := listener.URL(ln, false)
package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"kvasir/config"
)

// Open listens on a checked address. A socket file that was left behind
// by a process that is gone is removed first.
func Open(addr string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(addr, "unix:")
	if !isUnix {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("cannot listen on %q: %w%s", addr, bareNet(err), listenHint(err))
		}
		return ln, nil
	}
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %w", addr, err)
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %w", addr, bareNet(err))
	}
	return ln, nil
}

// listenHint says what to do about the two errors that people meet.
func listenHint(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "; another process has it: stop that one, or choose another address"
	case errors.Is(err, fs.ErrPermission):
		return "; ports below 1024 need a right: choose another port"
	}
	return ""
}

// removeStale removes a socket file that nobody answers on. Anything else at
// its place stays, and is an error.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return errors.New("there is a file that is no socket")
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
		return errors.New("another process listens there")
	}
	if !errors.Is(err, refused) {
		return bareNet(err)
	}
	return os.Remove(path)
}

// bareNet is an error of package net without the address, where the message
// says it already.
func bareNet(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// URL is what clients of a listener put before the path, with options for
// curl where it needs some.
func URL(ln net.Listener, withTLS bool) (url, curlOptions string) {
	scheme := "http"
	if withTLS {
		scheme, curlOptions = "https", "--insecure "
	}
	if ln.Addr().Network() == "unix" {
		return scheme + "://localhost", curlOptions + "--unix-socket " + ln.Addr().String() + " "
	}
	host, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		return scheme + "://" + ln.Addr().String(), curlOptions
	}
	if config.IsEverywhere(host) {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port), curlOptions
}

// Dial connects to whoever listens on a checked address of this host.
func Dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	if path, isUnix := strings.CutPrefix(addr, "unix:"); isUnix {
		return d.DialContext(ctx, "unix", path)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if config.IsEverywhere(host) {
		host = "127.0.0.1"
	}
	return d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
}

// Client asks whoever listens on a checked address of this host, whatever host
// the URL names. conf is for https; its caller sets the time limit.
func Client(addr string, conf *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   conf,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return Dial(ctx, addr) },
	}}
}

// ShowKey adds the key of the admin listener to a request, where a file names one.
func ShowKey(req *http.Request, file string) error {
	if file == "" {
		return nil
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read the key of the admin listener: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimRight(string(key), "\r\n"))
	return nil
}

// IsNobody says whether an error of Dial or Client means that nobody listens
// on the address.
func IsNobody(err error) bool { return errors.Is(err, refused) || errors.Is(err, fs.ErrNotExist) }
