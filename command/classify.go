// `kvasir classify`: what the classifiers say of texts, one JSON line for each.

package command

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"kvasir/classify"
	"kvasir/command/wiring"
	"kvasir/config"
	"kvasir/proxy"
)

func classifyCommand(p Program) *cobra.Command {
	flags := configFlags{builtIn: p.Config}
	cmd := &cobra.Command{
		Use:   "classify",
		Short: "Say what the classifiers find in texts, one JSON line each",
		Long: `Reads lines {"text": "..."} or {"messages": [...]} and writes for each, in the
same order, its category with confidence and scores, the jailbreak score and
whether the guard would act, the personal data with their places in Unicode
code points, the language, and the microseconds it took. A line that cannot be
read gets {"error": ...} and the exit code 1. All processors are used.`,
		Example: `  echo '{"text": "What is the integral of x squared?"}' | kvasir classify
  kvasir classify --config kvasir.yaml < in.jsonl > out.jsonl`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := flags.load(cmd)
			if err != nil {
				return err
			}
			in, done := watched(stdin(cmd, `lines {"text": "..."}`), os.Stdout, os.Stderr)
			defer done()
			return classifyLines(g.Config, in, cmd.OutOrStdout())
		},
	}
	flags.add(cmd)
	return cmd
}

// classifyLines classifies every line of in.
func classifyLines(c *config.Config, in io.Reader, out io.Writer) error {
	classifier, err := classify.New(asking(c))
	if err != nil {
		return err
	}
	return answerLines(in, out, func() lineAnswerer {
		return (&lineClassifier{c: classifier, reading: proxy.Reading{ClientTemplates: wiring.Guards(c).ClientTemplates}}).classify
	})
}

// asking are the options with every guard on, and none that would end judging
// early: the user wants to see everything that is found.
func asking(c *config.Config) classify.Options {
	o := wiring.Classify(c)
	o.Timeout, o.Decisions = 0, nil
	o.Jailbreak.Action, o.PII.Action, o.PII.All = classify.Annotate, classify.Annotate, true
	return o
}

// A lineClassifier classifies lines for one thread of classifyLines.
type lineClassifier struct {
	c       *classify.Classifier
	reading proxy.Reading
	one     classify.Request
}

// classified is one line of output.
type classified struct {
	Category  categoryFound  `json:"category"`
	Jailbreak jailbreakFound `json:"jailbreak"`
	PII       []entityFound  `json:"pii"`
	Language  string         `json:"language"`
	Hidden    int            `json:"hidden_characters,omitempty"`
	Micros    int64          `json:"micros"`
}

type categoryFound struct {
	Label      string             `json:"label"`
	Confidence float64            `json:"confidence"`
	Second     string             `json:"second"`
	Entropy    float64            `json:"entropy"`
	Scores     map[string]float32 `json:"scores"`
}

type jailbreakFound struct {
	Score   float64 `json:"score"`
	Flagged bool    `json:"flagged"`
	Type    string  `json:"type,omitempty"`
}

type entityFound struct {
	Type    string  `json:"type"`
	Start   int     `json:"start"`
	End     int     `json:"end"`
	Text    string  `json:"text"`
	Score   float32 `json:"score"`
	Message *int32  `json:"message,omitempty"` // of messages only
}

func (l *lineClassifier) classify(line []byte) (any, error) {
	var asked struct {
		Text     *string         `json:"text"`
		Messages json.RawMessage `json:"messages"`
	}
	if err := readObject(line, &asked, `"text" or "messages"`); err != nil {
		return nil, err
	}
	r := &l.one
	switch {
	case asked.Text != nil:
		r.Texts = append(r.Texts[:0], classify.Text{Bytes: []byte(*asked.Text), Role: classify.User})
		r.Messages, r.Turns = 1, 1
	case asked.Messages != nil:
		var err error
		if r, err = l.reading.Chat(line); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New(`the line has neither "text" nor "messages"`)
	}
	r.Auto, r.Also = true, []classify.Kind{classify.KindCategory, classify.KindLanguage}
	start := time.Now()
	v := l.c.Judge(r)
	defer v.Release()
	micros := time.Since(start).Microseconds()
	if err := errors.Join(v.Jailbreak.Err, v.PII.Err); err != nil {
		return nil, err
	}
	found := &classified{
		Category:  categoryOf(v),
		Jailbreak: jailbreakFound{v.Jailbreak.Score, v.Jailbreak.Flagged, v.Jailbreak.Type},
		PII:       entitiesOf(v, r, asked.Text == nil),
		Language:  v.Language.Code,
		Hidden:    v.Hidden,
		Micros:    micros,
	}
	return found, nil
}

func categoryOf(v *classify.Verdict) categoryFound {
	c := &v.Category
	found := categoryFound{c.Label, c.Confidence, c.Second, c.Entropy, make(map[string]float32, len(c.Scores))}
	for i, label := range classify.Categories {
		found.Scores[label] = c.Scores[i]
	}
	return found
}

// entitiesOf lists the spans with their places in code points.
func entitiesOf(v *classify.Verdict, r *classify.Request, messages bool) []entityFound {
	found := make([]entityFound, 0, len(v.PII.Spans))
	text, bytes, points := -1, 0, 0 // code points counted so far: of which text, up to which byte
	for i := range v.PII.Spans {
		e := &v.PII.Spans[i]
		if e.Text != text || int(e.Start) < bytes {
			text, bytes, points = e.Text, 0, 0
		}
		of := r.Texts[e.Text].Bytes
		points += utf8.RuneCount(of[bytes:e.Start])
		bytes = int(e.Start)
		one := entityFound{
			Type: e.Type.String(), Start: points, End: points + utf8.RuneCount(of[e.Start:e.End]),
			Text: string(of[e.Start:e.End]), Score: e.Score,
		}
		if messages {
			message := r.Texts[e.Text].Message
			one.Message = &message
		}
		found = append(found, one)
	}
	return found
}
