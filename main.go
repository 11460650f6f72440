// Kvasir: an LLM gateway between OpenAI clients and GPU inference workers.

// The program kvasir: what it does stands in package command.
package main

import (
	_ "embed"
	"os"

	"kvasir/command"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version = "dev"

// date is when the source of this version was committed, set by the linker in the same way.
var date = ""

// builtIn is the configuration that runs when no file is named. It is also
// the documented example.
//
//go:embed config.yaml
var builtIn []byte

func main() {
	os.Exit(command.Main(os.Args[1:], command.Program{Version: version, Date: date, Config: builtIn}))
}
