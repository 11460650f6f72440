// The classifiers over HTTP, in the shapes of vLLM Semantic Router.

package admin

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"kvasir/apidoc"
	"kvasir/classify"
	"kvasir/openai"
	"kvasir/proxy/respond"
)

// classifierRoutes adds POST /api/v1/classify/{intent,pii,security} and
// /api/v1/similarity.
func classifierRoutes(r *apidoc.Routes, now func() Classifier) {
	for _, c := range []struct {
		path, does string
		answers    apidoc.Schema
		answer     func(Classifier, *textQuestion) (any, *openai.Error)
	}{
		{"/api/v1/classify/intent", "The category of a text", apidoc.Of[intentAnswer](), intent},
		{"/api/v1/classify/pii", "The personal data in a text", apidoc.Of[piiAnswer](), pii},
		{"/api/v1/classify/security", "The probability of an attack", apidoc.Of[securityAnswer](), security},
		{"/api/v1/similarity", "How near two texts are", apidoc.Of[similarityAnswer](), similarity},
	} {
		r.Add(apidoc.Operation{Method: "POST", Path: c.path, Does: c.does, Group: "classify", Asks: textAsked, Answers: c.answers}, classifying(now, c.answer))
	}
}

// textAsked is a textQuestion as it may be written: what a route does not read may be left out.
var textAsked = apidoc.Object(apidoc.Schema{
	"text": apidoc.Text("needed, but for similarity"), "text1": apidoc.Text("of similarity"), "text2": apidoc.Text("of similarity"),
	"options": apidoc.Object(apidoc.Schema{
		"return_probabilities": apidoc.Schema{"type": "boolean"}, "confidence_threshold": apidoc.Schema{"type": "number"},
		"entity_types": apidoc.List(apidoc.Text("a type of personal data, or all")),
	}),
})

// A textQuestion is the body of a request to any of these routes.
type textQuestion struct {
	Text    *string `json:"text"`
	Text1   *string `json:"text1"` // similarity
	Text2   *string `json:"text2"`
	Options struct {
		ReturnProbabilities bool     `json:"return_probabilities"`
		ConfidenceThreshold float64  `json:"confidence_threshold"`
		EntityTypes         []string `json:"entity_types"` // pii: only these; empty or "all": every type
	} `json:"options"`
}

// classifying makes a route that reads a textQuestion and writes the result of answer.
func classifying(now func() Classifier, answer func(Classifier, *textQuestion) (any, *openai.Error)) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		var q textQuestion
		if err := json.Unmarshal(ctx.Request.Body(), &q); err != nil {
			respond.Error(ctx, openai.Invalid("", "We could not parse the JSON body of your request: %v", err))
			return
		}
		out, refused := answer(now(), &q)
		respond.JSON(ctx, out, refused, "")
	}
}

// judgeText classifies one text as if a user had sent it, and returns how long that took. The
// caller releases the verdict.
func judgeText(c Classifier, q *textQuestion, also ...classify.Kind) (*classify.Verdict, time.Duration, *openai.Error) {
	if q.Text == nil || *q.Text == "" {
		return nil, 0, openai.Invalid("text", "you must provide a text parameter: a string that is not empty")
	}
	start := time.Now()
	v := c.Judge(&classify.Request{
		Texts: []classify.Text{{Bytes: []byte(*q.Text), Role: classify.User}}, Auto: true, Messages: 1, Turns: 1, Also: also,
	})
	for _, err := range []error{v.Jailbreak.Err, v.PII.Err} {
		if errors.Is(err, classify.ErrBusy) {
			v.Release()
			return nil, 0, tooManyToJudge
		}
		if err != nil {
			v.Release()
			return nil, 0, &openai.Error{Status: 503, Type: "server_error", Code: "guard_failed", Message: "The text could not be judged: " + err.Error()}
		}
	}
	return v, time.Since(start), nil
}

// tooManyToJudge is the error when too many texts are being classified; the API's guards return
// the same.
var tooManyToJudge = &openai.Error{
	Status: 503, Type: "server_error", Code: "overloaded", RetryAfter: time.Second,
	Message: "Too many requests wait to be judged by the guards. Ask again; nothing was sent to a model",
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

type intentAnswer struct {
	Classification struct {
		Category   string  `json:"category"`
		Confidence float64 `json:"confidence"`
		Took       float64 `json:"processing_time_ms"`
	} `json:"classification"`
	Probabilities map[string]float32 `json:"probabilities,omitempty"`
	Model         string             `json:"recommended_model"`
	Decision      string             `json:"routing_decision,omitempty"`
}

// intent returns the category of a text, and the model and decision that it would get.
func intent(c Classifier, q *textQuestion) (any, *openai.Error) {
	v, took, refused := judgeText(c, q, classify.KindCategory)
	if refused != nil {
		return nil, refused
	}
	defer v.Release()
	out := &intentAnswer{Model: c.Model}
	k := &v.Category
	out.Classification.Category, out.Classification.Confidence, out.Classification.Took = k.Name, k.Confidence, milliseconds(took)
	if t := q.Options.ConfidenceThreshold; t > 0 {
		out.Classification.Category = k.Label
		if k.Confidence < t {
			out.Classification.Category = "other"
		}
	}
	if q.Options.ReturnProbabilities {
		out.Probabilities = make(map[string]float32, len(k.Scores))
		for i, label := range classify.Categories {
			out.Probabilities[label] = k.Scores[i]
		}
	}
	if d := v.Decision; d != nil {
		out.Decision = d.Name
		if d.Model != "" {
			out.Model = d.Model
		}
	}
	return out, nil
}

type piiAnswer struct {
	Has      bool        `json:"has_pii"`
	Entities []piiEntity `json:"entities"`
	Masked   string      `json:"masked_text"`
	Advice   string      `json:"security_recommendation"`
	Took     float64     `json:"processing_time_ms"`
}

type piiEntity struct {
	Type       string  `json:"type"`
	Value      string  `json:"value"`
	Confidence float32 `json:"confidence"`
	Start      int     `json:"start_position"` // code points
	End        int     `json:"end_position"`
	Masked     string  `json:"masked_value"`
}

// pii lists the personal data in a text. The advice follows the guard's allow list.
func pii(c Classifier, q *textQuestion) (any, *openai.Error) {
	v, took, refused := judgeText(c, q)
	if refused != nil {
		return nil, refused
	}
	defer v.Release()
	wanted := q.Options.EntityTypes
	known := classify.Values(classify.KindPII)
	for _, t := range wanted {
		if t != "all" && !slices.Contains(known, t) {
			return nil, openai.Invalid("options.entity_types", "`%s` is no type of personal data; the types are %s", openai.Clip(t), strings.Join(known, ", "))
		}
	}
	out := &piiAnswer{Entities: []piiEntity{}, Advice: "allow", Took: milliseconds(took)}
	text := *q.Text
	bytes, points := 0, 0
	var masked []byte
	for i := range v.PII.Spans {
		e := &v.PII.Spans[i]
		name := e.Type.String()
		if len(wanted) > 0 && !slices.Contains(wanted, name) && !slices.Contains(wanted, "all") || float64(e.Score) < q.Options.ConfidenceThreshold {
			continue
		}
		start, end := int(e.Start), int(e.End)
		masked = append(append(masked, text[bytes:start]...), "["+name+"]"...)
		points += utf8.RuneCountInString(text[bytes:start])
		one := piiEntity{Type: name, Value: text[start:end], Confidence: e.Score, Start: points, Masked: "[" + name + "]"}
		points += utf8.RuneCountInString(one.Value)
		one.End, bytes = points, end
		out.Entities = append(out.Entities, one)
		if v.PII.Denies(e.Type) {
			out.Advice = "block"
		}
	}
	out.Has = len(out.Entities) > 0
	out.Masked = string(append(masked, text[bytes:]...))
	return out, nil
}

type securityAnswer struct {
	Is         bool     `json:"is_jailbreak"`
	Risk       float64  `json:"risk_score"` // probability of an attack
	Types      []string `json:"detection_types"`
	Confidence float64  `json:"confidence"` // of the answer, whichever it is
	Advice     string   `json:"recommendation"`
	Reasoning  string   `json:"reasoning"`
	Patterns   []string `json:"patterns_detected"`
	Took       float64  `json:"processing_time_ms"`
}

// security returns the probability of an attack.
func security(c Classifier, q *textQuestion) (any, *openai.Error) {
	v, took, refused := judgeText(c, q)
	if refused != nil {
		return nil, refused
	}
	defer v.Release()
	j := &v.Jailbreak
	out := &securityAnswer{
		Is: j.Flagged, Risk: j.Score, Types: []string{}, Confidence: 1 - j.Score, Advice: "allow", Patterns: []string{}, Took: milliseconds(took),
		Reasoning: "the probability of an attack, " + decimal3(j.Score) + ", is below the threshold of " + decimal3(c.Attack),
	}
	if j.Flagged {
		out.Types, out.Confidence, out.Advice = []string{j.Type}, j.Score, "block"
		out.Patterns = out.Types
		out.Reasoning = "the probability of an attack, " + decimal3(j.Score) + ", reaches the threshold of " + decimal3(c.Attack)
	}
	return out, nil
}

type similarityAnswer struct {
	Model      string  `json:"model_used"`
	Similarity float64 `json:"similarity"` // cosine
	Took       float64 `json:"processing_time_ms"`
}

// similarity compares two texts by their embeddings.
func similarity(c Classifier, q *textQuestion) (any, *openai.Error) {
	if q.Text1 == nil || q.Text2 == nil || *q.Text1 == "" || *q.Text2 == "" {
		return nil, openai.Invalid("text1", "you must provide text1 and text2: strings that are not empty")
	}
	first, took1, refused := judgeText(c, &textQuestion{Text: q.Text1}, classify.KindSentence)
	if refused != nil {
		return nil, refused
	}
	defer first.Release()
	second, took2, refused := judgeText(c, &textQuestion{Text: q.Text2}, classify.KindSentence)
	if refused != nil {
		return nil, refused
	}
	defer second.Release()
	if first.Embedding == nil || second.Embedding == nil {
		return nil, openai.Invalid("text1", "there is nothing to compare in one of the texts")
	}
	cosine := 0.0 // both have length 1
	for i, x := range first.Embedding {
		cosine += float64(x) * float64(second.Embedding[i])
	}
	return &similarityAnswer{Model: "universal-sentence-encoder-multilingual", Similarity: cosine, Took: milliseconds(took1 + took2)}, nil
}

func decimal3(p float64) string { return strconv.FormatFloat(p, 'f', 3, 64) }
