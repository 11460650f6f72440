//go:build linux

// A bare fasthttp proxy: the cost of the library alone.

package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/valyala/fasthttp"
)

// runBare is the helper process `bench bare -listen A -to B`: fasthttp's own server and client
// with nothing between them. It parses no body, logs and counts nothing, does not notice lost
// clients, and buffers every answer completely.
func runBare(args []string) error {
	f := flag.NewFlagSet("bare", flag.ContinueOnError)
	address := f.String("listen", "127.0.0.1:0", "address")
	to := f.String("to", "", "where to connect to")
	if err := f.Parse(args); err != nil {
		return err
	}
	worker := &fasthttp.HostClient{Addr: *to, MaxConns: 4096}
	server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		ctx.Request.Header.Del("Connection")
		if err := worker.Do(&ctx.Request, &ctx.Response); err != nil {
			ctx.Error(err.Error(), fasthttp.StatusBadGateway)
		}
	}}
	if err := server.ListenAndServe(*address); err != nil {
		return fmt.Errorf("cannot serve as a bare proxy: %w", err)
	}
	return errors.New("the bare proxy has ended")
}
