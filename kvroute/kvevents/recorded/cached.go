// What an engine that runs says of a prompt.

package recorded

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
)

// Cached sends a completion request to the engine at an address, under a salt unless that is empty, and returns how
// many tokens of its prompt the engine found cached.
func Cached(t testing.TB, address string, request map[string]any, salt string) int {
	t.Helper()
	if salt != "" {
		request["cache_salt"] = salt
	}
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post("http://"+address+"/v1/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var reply struct {
		Usage struct {
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	return reply.Usage.Details.Cached
}
