// The small routes: health, version, models, tokenize and detokenize.

package sim

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// serveNothing answers /health and /ping: 200 without a body.
func serveNothing(s *Server, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
}

func serveVersion(s *Server, w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, append(appendString([]byte(`{"version":`), Version), '}'))
}

func serveModels(s *Server, w http.ResponseWriter, _ *http.Request) {
	created := strconv.FormatInt(time.Now().Unix(), 10)
	b := appendString([]byte(`{"object":"list","data":[{"id":`), s.options.Model)
	b = append(b, `,"object":"model","created":`+created+`,"owned_by":"vllm","root":`...)
	b = append(appendString(b, s.options.Model), `,"parent":null,"max_model_len":`...)
	b = strconv.AppendInt(b, int64(s.options.MaxModelLen), 10)
	b = appendHex64(append(b, `,"permission":[{"id":"modelperm-`...), rand.Uint64())
	b = append(b, `","object":"model_permission","created":`+created+`,"allow_create_engine":false,`+
		`"allow_sampling":true,"allow_logprobs":true,"allow_search_indices":false,"allow_view":true,`+
		`"allow_fine_tuning":false,"organization":"*","group":null,"is_blocking":false}]}]}`...)
	writeJSON(w, http.StatusOK, b)
}

// serveTokenize counts the tokens of a prompt or of a conversation as the completion routes do.
func serveTokenize(s *Server, w http.ResponseWriter, r *http.Request) {
	f := readBody(w, r)
	tokens := s.tokenize(f)
	withTexts := f.boolean("return_token_strs")
	if f.failure != nil {
		s.refuse(w, f.failure)
		return
	}
	b := strconv.AppendInt([]byte(`{"count":`), int64(len(tokens)), 10)
	b = strconv.AppendInt(append(b, `,"max_model_len":`...), int64(s.options.MaxModelLen), 10)
	b = append(appendIDs(append(b, `,"tokens":[`...), tokens), `],"token_strs":`...)
	if !withTexts {
		writeJSON(w, http.StatusOK, append(b, "null}"...))
		return
	}
	b = append(b, '[')
	for i, id := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, strings.ReplaceAll(string(appendTokenText(nil, id)), " ", "Ġ"))
	}
	writeJSON(w, http.StatusOK, append(b, "]}"...))
}

// tokenize returns the prompt or the conversation of a request as tokens.
func (s *Server) tokenize(f *fields) []uint32 {
	c := &completion{}
	if f.get("messages") != nil {
		messages := readMessages(f)
		s.dialect.model(s.options, f, c)
		return render(s.options, f, messages)
	}
	f.require("prompt")
	prompt, _ := f.text("prompt")
	s.dialect.model(s.options, f, c)
	return appendTokens(nil, prompt)
}

// appendIDs appends numbers with commas between them.
func appendIDs(b []byte, ids []uint32) []byte {
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(id), 10)
	}
	return b
}

// serveDetokenize turns token ids back into text.
func serveDetokenize(s *Server, w http.ResponseWriter, r *http.Request) {
	f := readBody(w, r)
	f.require("tokens")
	checkModel(f, s.options.Model)
	var tokens []uint32
	if raw := f.get("tokens"); raw != nil && json.Unmarshal(raw, &tokens) != nil {
		f.complain("list_type", "tokens", "Input should be a valid list")
	}
	if f.failure != nil {
		s.refuse(w, f.failure)
		return
	}
	var text []byte
	for _, id := range tokens {
		text = appendTokenText(text, id)
	}
	writeJSON(w, http.StatusOK, append(appendString([]byte(`{"prompt":`), text), '}'))
}
