// Tests of the classifiers over HTTP.

package admin

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"kvasir/classify"
	"kvasir/openai/answer/answertest"
)

// guarded returns options with both guards on, as the proxy has them on this listener.
func guarded(t *testing.T) *Options {
	t.Helper()
	c, err := classify.New(classify.Options{
		Timeout:   5 * time.Second,
		Jailbreak: classify.GuardOptions{Action: classify.Annotate, Threshold: 0.7},
		PII: classify.PIIOptions{
			GuardOptions: classify.GuardOptions{Action: classify.Annotate, Threshold: 0.7}, All: true,
			Allow: []string{"PERSON", "GPE", "DATE_TIME", "ORGANIZATION"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	o.Classifier = func() Classifier { return Classifier{Classifier: c, Attack: 0.7, Model: "m"} }
	return o
}

func askFor(t *testing.T, o *Options, path, body string) (int, map[string]any) {
	t.Helper()
	status, reply := ask(o, "POST", path, body)
	var m map[string]any
	if err := json.Unmarshal([]byte(reply), &m); err != nil {
		t.Fatalf("%v in %s", err, reply)
	}
	return status, m
}

func TestAskForPII(t *testing.T) {
	o := guarded(t)
	status, a := askFor(t, o, "/api/v1/classify/pii", `{"text":"é: 4111 1111 1111 1111 or ann@example.org"}`)
	if status != 200 || a["has_pii"] != true || a["masked_text"] != "é: [CREDIT_CARD] or [EMAIL_ADDRESS]" || a["security_recommendation"] != "block" {
		t.Errorf("%d %v", status, a)
	}
	first := a["entities"].([]any)[0].(map[string]any)
	if first["type"] != "CREDIT_CARD" || first["start_position"] != 3.0 || first["end_position"] != 22.0 || first["value"] != "4111 1111 1111 1111" {
		t.Errorf("the first entity is %v", first)
	}
	_, a = askFor(t, o, "/api/v1/classify/pii", `{"text":"4111 1111 1111 1111 or ann@example.org","options":{"entity_types":["EMAIL_ADDRESS"]}}`)
	if n := len(a["entities"].([]any)); n != 1 {
		t.Errorf("%d entities of one type: %v", n, a)
	}
}

func TestAskForIntentSecuritySimilarity(t *testing.T) {
	o := guarded(t)
	status, a := askFor(t, o, "/api/v1/classify/intent", `{"text":"What is the derivative of x^3?","options":{"return_probabilities":true}}`)
	if status != 200 || a["recommended_model"] != "m" || len(a["probabilities"].(map[string]any)) != 14 {
		t.Errorf("%d %v", status, a)
	}
	status, a = askFor(t, o, "/api/v1/classify/security", `{"text":"hello"}`)
	if status != 200 || a["is_jailbreak"] != false || a["recommendation"] != "allow" {
		t.Errorf("%d %v", status, a)
	}
	status, a = askFor(t, o, "/api/v1/similarity", `{"text1":"the cat sleeps","text2":"the cat sleeps"}`)
	if status != 200 || fmt.Sprintf("%.3f", a["similarity"]) != "1.000" {
		t.Errorf("%d %v", status, a)
	}
	for path, body := range map[string]string{
		"/api/v1/classify/intent": `{}`, "/api/v1/classify/pii": `{"text":""}`, "/api/v1/classify/security": `{"text":3}`, "/api/v1/similarity": `{"text1":"a"}`,
	} {
		if status, a := askFor(t, o, path, body); status != 400 || answertest.At(any(a), "error message") == nil {
			t.Errorf("%s %s: %d %v", path, body, status, a)
		}
	}
}

// For a type that does not exist, it once answered that the text may pass.
func TestAskForUnknownTypes(t *testing.T) {
	o := guarded(t)
	status, a := askFor(t, o, "/api/v1/classify/pii", `{"text":"4111 1111 1111 1111","options":{"entity_types":["CREDIT"]}}`)
	if status != 400 || answertest.At(a, "error param") != "options.entity_types" {
		t.Errorf("%d %v", status, a)
	}
}
