// Embeddings, rerank and score, and the routes that no simulated engine has.

package sim

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

type embeddingReply struct {
	Data []struct {
		Index     int
		Embedding json.RawMessage
	}
	Usage struct {
		Prompt int `json:"prompt_tokens"`
	}
}

func TestEmbeddings(t *testing.T) {
	address := start(t, Options{Name: "w", Speedup: 1000})
	embed := func(body string) (vectors [][]float64, tokens int) {
		r := fetch[embeddingReply](t, address, "/v1/embeddings", body, "200")
		for i, d := range r.Data {
			var v []float64
			var base string
			if json.Unmarshal(d.Embedding, &base) == nil {
				raw, err := base64.StdEncoding.DecodeString(base)
				if err != nil {
					t.Fatal(err)
				}
				for ; len(raw) > 0; raw = raw[4:] {
					v = append(v, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))))
				}
			} else if err := json.Unmarshal(d.Embedding, &v); err != nil {
				t.Fatal(err)
			}
			length := 0.0
			for _, x := range v {
				length += x * x
			}
			if d.Index != i || math.Abs(length-1) > 1e-5 {
				t.Errorf("%s: vector %d has the index %d and the length %v", body, i, d.Index, math.Sqrt(length))
			}
			vectors = append(vectors, v)
		}
		return vectors, r.Usage.Prompt
	}
	one, tokens := embed(`{"input":"How do I reset a password?"}`)
	if len(one) != 1 || len(one[0]) != embeddingSize || tokens == 0 {
		t.Errorf("%d vectors of %d numbers, %d tokens", len(one), len(one[0]), tokens)
	}
	ids := strings.ReplaceAll(strings.Trim(fmt.Sprint(appendTokens(nil, "How do I reset a password?")), "[]"), " ", ",")
	for _, same := range []string{
		`{"input":"How do I reset a password?","encoding_format":"base64"}`, `{"input":[` + ids + `]}`, `{"input":[[` + ids + `],[1]]}`,
		`{"input":["How do I reset a password?","x"]}`,
	} {
		if v, _ := embed(same); !slices.Equal(v[0], one[0]) {
			t.Errorf("%s gives another vector", same)
		}
	}
	if v, _ := embed(`{"input":"x","dimensions":5}`); len(v[0]) != 5 {
		t.Errorf("5 dimensions are %d", len(v[0]))
	}
	for body, why := range map[string]string{
		`{"input":""}`: "cannot be empty", `{"input":[]}`: "valid string", `{}`: "Field required",
		`{"input":"x","dimensions":0}`: "dimensions", `{"input":"x","encoding_format":"bytes"}`: "encoding_format",
	} {
		if refused := fetch[errorReply](t, address, "/v1/embeddings", body, "400"); !strings.Contains(refused.Error.Message, why) {
			t.Errorf("%s: %+v", body, refused)
		}
	}
}

func TestRerankAndScore(t *testing.T) {
	address := start(t, Options{Name: "w", Speedup: 1000})
	query, near, far := `"How do I reset my password?"`, `"Reset a forgotten password here"`, `"Copper lantern by the river"`
	type rerank struct {
		Results []struct {
			Index    int
			Document struct{ Text string }
			Score    float64 `json:"relevance_score"`
		}
		Usage struct {
			Total int `json:"total_tokens"`
		}
	}
	r := fetch[rerank](t, address, "/v1/rerank", `{"query":`+query+`,"documents":[`+far+`,{"text":`+near+`}]}`, "200")
	if len(r.Results) != 2 || r.Results[0].Index != 1 || r.Results[0].Score <= r.Results[1].Score || r.Results[0].Document.Text == "" || r.Usage.Total == 0 {
		t.Errorf("%+v", r)
	}
	if r := fetch[rerank](t, address, "/rerank", `{"query":`+query+`,"documents":[`+far+`,`+near+`],"top_n":1}`, "200"); len(r.Results) != 1 || r.Results[0].Index != 1 {
		t.Errorf("%+v", r)
	}
	type score struct {
		Data []struct{ Score float64 }
	}
	for _, names := range [][2]string{{"text_1", "text_2"}, {"queries", "documents"}, {"queries", "items"}, {"data_1", "data_2"}} {
		body := `{"` + names[0] + `":` + query + `,"` + names[1] + `":[` + near + `,` + far + `,` + query + `]}`
		s := fetch[score](t, address, "/v1/score", body, "200").Data
		if len(s) != 3 || s[0].Score <= s[1].Score || s[2].Score < 0.999 {
			t.Errorf("%s: %+v", body, s)
		}
	}
	for body, why := range map[string]string{
		`{"text_1":["a","b"],"text_2":["a","b","c"]}`: "1:1, 1:N or N:N", `{"text_1":"a"}`: "Field required", `{"text_1":"a","text_2":[7]}`: "valid string",
	} {
		if refused := fetch[errorReply](t, address, "/v1/score", body, "400"); !strings.Contains(refused.Error.Message, why) {
			t.Errorf("%s: %+v", body, refused)
		}
	}
}

// Routes that need another kind of model say so, and what there is.
func TestAbsentRoutes(t *testing.T) {
	address := start(t, Options{Name: "w"})
	for _, path := range absentRoutes {
		refused := fetch[errorReply](t, address, path, `{"input":"x"}`, "404")
		if m := refused.Error.Message; !strings.Contains(m, `"w" has no model for `+path) || !strings.Contains(m, "/v1/responses") {
			t.Errorf("%s: %+v", path, refused)
		}
	}
}
