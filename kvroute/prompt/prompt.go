// Package prompt knows which tokens an engine makes of a request, from the model's own files
// (tokenizer.json, its chat template), or else by asking the engine.
//
//	library := prompt.NewLibrary(prompt.Options{})
//	m, err := library.Model("qwen", "auto", prompt.Hints{Root: "Qwen/Qwen3-8B", Ask: ask})
//	ids, err := m.Chat(ctx, nil, body)
//
// What it returns are the engine's tokens or an error, never a guess: a request that is not understood
// to the last field (pictures, a template of its own, a template that raises) is ErrUnsupported,
// ErrTemplate, and the caller does without tokens.
package prompt

import (
	"context"
	"errors"
)

// Why there are no tokens; errors of this package wrap one of them, or what the file system said.
var (
	// ErrNone: no source of tokens is known for this model; text stands in for tokens.
	ErrNone = errors.New("no source of tokens")
	// ErrNoTemplate: there is a tokenizer, but nothing that says how a chat is written.
	ErrNoTemplate = errors.New("no chat template")
	// ErrTemplate: the chat template cannot be read, or refused this conversation.
	ErrTemplate = errors.New("chat template failed")
	// ErrUnsupported: the request, or a file, asks for something that is not known here.
	ErrUnsupported = errors.New("not supported")
	// ErrNoRoute: a worker does not have the route.
	ErrNoRoute = errors.New("no such route")
	// ErrDiffers: the files give other tokens than the worker.
	ErrDiffers = errors.New("not the worker's tokens")
	// ErrRequest: the body is not a request of this kind; the engine will refuse it, too.
	ErrRequest = errors.New("bad request")
)

// Asker sends a POST with a JSON body to a path of some worker of the model, /tokenize for example, and
// returns the body of an answer of status 200; other answers are errors, ErrNoRoute where the path is
// not there or not for us.
type Asker func(ctx context.Context, path string, body []byte) ([]byte, error)

// Hints is what is known of a model from its workers.
type Hints struct {
	Root   string // what the worker's /v1/models says in `root`: a path or a Hugging Face id; "": not known
	Engine string // whose prompts may be others than vLLM's: only plain text is known how it takes it; "": they are vLLM's
	Ask    Asker  // nil: its workers have no tokenize route. A model keeps the first it was given.
}
