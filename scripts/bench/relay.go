//go:build linux

// A bare TCP relay: what a second hop costs when it does nothing at all.

package main

import (
	"flag"
	"fmt"
	"io"
	"net"
)

// runRelay is the helper process `bench relay -listen A -to B`. Go sets
// TCP_NODELAY on both sides by itself.
func runRelay(args []string) error {
	f := flag.NewFlagSet("relay", flag.ContinueOnError)
	address := f.String("listen", "127.0.0.1:0", "address")
	to := f.String("to", "", "where to connect to")
	if err := f.Parse(args); err != nil {
		return err
	}
	l, err := net.Listen("tcp", *address)
	if err != nil {
		return fmt.Errorf("cannot listen as a relay: %w", err)
	}
	return relay(l, *to)
}

// relay joins each connection with one to `to` until the listener is closed.
func relay(l net.Listener, to string) error {
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		server, err := net.Dial("tcp", to)
		if err != nil {
			client.Close()
			continue
		}
		go pass(client.(*net.TCPConn), server.(*net.TCPConn))
		go pass(server.(*net.TCPConn), client.(*net.TCPConn))
	}
}

// pass copies one direction, and passes its end on as a half-close.
func pass(from, to *net.TCPConn) {
	_, err := io.Copy(to, from)
	if err != nil {
		to.Close()
		from.Close()
		return
	}
	_ = to.CloseWrite() // fails if the other side is gone already; the other direction closes the rest
}
