// The classifiers asked over HTTP.

package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"kvasir/classify"

	"kvasir/openai/answer/answertest"
)

func askAdmin(t *testing.T, p *testProxy, path, body string) (int, map[string]any) {
	t.Helper()
	resp, err := http.Post("http://"+p.admin+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, _ := io.ReadAll(resp.Body)
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return resp.StatusCode, m
}

func TestAskForPII(t *testing.T) {
	p := startProxy(t, guarded(classify.Block, goodWorker(t).url))
	status, a := askAdmin(t, p, "/api/v1/classify/pii", `{"text":"é: 4111 1111 1111 1111 or ann@example.org"}`)
	if status != 200 || a["has_pii"] != true || a["masked_text"] != "é: [CREDIT_CARD] or [EMAIL_ADDRESS]" || a["security_recommendation"] != "block" {
		t.Errorf("%d %v", status, a)
	}
	first := a["entities"].([]any)[0].(map[string]any)
	if first["type"] != "CREDIT_CARD" || first["start_position"] != 3.0 || first["end_position"] != 22.0 || first["value"] != "4111 1111 1111 1111" {
		t.Errorf("the first entity is %v", first)
	}
	_, a = askAdmin(t, p, "/api/v1/classify/pii", `{"text":"4111 1111 1111 1111 or ann@example.org","options":{"entity_types":["EMAIL_ADDRESS"]}}`)
	if n := len(a["entities"].([]any)); n != 1 {
		t.Errorf("%d entities of one type: %v", n, a)
	}
}

func TestAskForIntentSecuritySimilarity(t *testing.T) {
	p := startProxy(t, guarded(classify.Block, goodWorker(t).url))
	status, a := askAdmin(t, p, "/api/v1/classify/intent", `{"text":"What is the derivative of x^3?","options":{"return_probabilities":true}}`)
	if status != 200 || a["recommended_model"] != "m" || len(a["probabilities"].(map[string]any)) != 14 {
		t.Errorf("%d %v", status, a)
	}
	status, a = askAdmin(t, p, "/api/v1/classify/security", `{"text":"hello"}`)
	if status != 200 || a["is_jailbreak"] != false || a["recommendation"] != "allow" {
		t.Errorf("%d %v", status, a)
	}
	status, a = askAdmin(t, p, "/api/v1/similarity", `{"text1":"the cat sleeps","text2":"the cat sleeps"}`)
	if status != 200 || fmt.Sprintf("%.3f", a["similarity"]) != "1.000" {
		t.Errorf("%d %v", status, a)
	}
	for path, body := range map[string]string{
		"/api/v1/classify/intent": `{}`, "/api/v1/classify/pii": `{"text":""}`, "/api/v1/classify/security": `{"text":3}`, "/api/v1/similarity": `{"text1":"a"}`,
	} {
		if status, a := askAdmin(t, p, path, body); status != 400 || answertest.At(any(a), "error message") == nil {
			t.Errorf("%s %s: %d %v", path, body, status, a)
		}
	}
}
