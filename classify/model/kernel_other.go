// Processors without assembly of our own.

//go:build !amd64 && !arm64

package model

func forms() []*form { return []*form{&plainForm} }
