// A plan: what is settled about a request before a worker is asked.

package proxy

import (
	"slices"

	"kvasir/classify"
	"kvasir/openai"
	"kvasir/openai/answer"
)

// A plan is what Kvasir makes of one request before a worker is asked: which model
// answers, what was found in its texts, what changes in its body, and what placement
// will be asked for. It knows no connection and no worker, and sends nothing.
// The pipeline carries it out; POST /explain shows it.
//
// One step after another fills it. Once workers are asked, only forward changes it: model, edit and
// placing, when it turns to another model or to a worker that takes no salt. Its memory serves the
// next request's plan.
type plan struct {
	state   *state // the configuration under which the request began
	route   *openai.Route
	key     *keyState // nil: no keys are configured
	headers []byte    // the client's lines, as they came

	body []byte         // as it was parsed: decompressed; nil once the answer streams
	size int            // of body in bytes, also after it is gone
	req  openai.Request // sub-slices of body

	asked  string // the model of the request; "": none
	chosen string // the model that should answer
	model  string // the model that answers: chosen, or a fallback

	reading   classify.Request  // what the classifier reads: sub-slices of body and plain
	plain     []byte            // texts with their escapes resolved
	verdict   *classify.Verdict // nil: nothing is judged, or it was given back with the body
	judgement judgement         // what headers, log and metrics say of the verdict, which it outlives

	edit       openai.Splices   // every change of the body
	veil       answer.Veil      // the values that are hidden from the worker
	unveil     *answer.Unveiler // puts them back into the answer; nil: there is nothing to put back
	hidesUsage bool             // the client did not ask for the usage event

	placing placing
}

// isLeftToUs says whether a request leaves its model to Kvasir.
func isLeftToUs(asked string) bool { return asked == "" || isAutoModel(asked) }

// modelFor is the model that answers a request: MoM and auto become the default one.
func modelFor(asked string, s *state) string {
	if isLeftToUs(asked) {
		return s.defaultModel()
	}
	return asked
}

// parse reads the body, once.
func (pl *plan) parse(body, contentType []byte) *openai.Error {
	pl.body, pl.size = body, len(body)
	if err := pl.req.Parse(*pl.route, body, contentType); err != nil {
		return err
	}
	if err := pl.req.RefuseTemplate(pl.state.settings.Guards.ClientTemplates); err != nil {
		return err
	}
	pl.asked = string(pl.req.Model) // the body's bytes do not outlive the request
	return nil
}

// answerBy says which model answers: the one asked for, the default one, or a decision's.
func (pl *plan) answerBy(model string) { pl.model, pl.chosen = model, model }

// isJudged says whether the classifier has anything to do for the request.
func (pl *plan) isJudged() bool {
	return !pl.state.classifier.Idle(isLeftToUs(pl.asked)) && pl.route.Judged()
}

// mayChange says whether a decision may choose another model than the one that was named.
func (pl *plan) mayChange() bool {
	return pl.isJudged() && pl.state.classifier.Decides(isLeftToUs(pl.asked))
}

// decisionOf is the decision that holds; nil: none does, or nothing was judged.
func decisionOf(v *classify.Verdict) *classify.Decision {
	if v == nil {
		return nil
	}
	return v.Decision
}

// decidedModel is the model that the decision names, if the key may have that one, else
// the one that would answer anyway.
func decidedModel(pl *plan) string {
	d := decisionOf(pl.verdict)
	if d == nil || d.Model == "" || pl.key != nil && !permits(pl.key, pl.asked, d.Model) {
		return pl.model
	}
	return d.Model
}

// fallback is the model to ask after so many others that could not answer; "": there is none.
// Behind those that the configuration names comes the default one, where the model was left to
// us and a decision chose another; a model whose fallback is an empty list has none, since what is
// sent to it may be for nobody else.
func (pl *plan) fallback(after int) string {
	list := pl.state.models[pl.chosen].Fallback
	switch {
	case after < len(list):
		return list[after]
	case after > len(list) || !isLeftToUs(pl.asked) || list != nil && len(list) == 0:
		return ""
	}
	standard := pl.state.defaultModel()
	if standard == pl.chosen || slices.Contains(list, standard) {
		return ""
	}
	return standard
}

// splice notes every change of the body for the model that answers. All other bytes
// reach the worker as they came. It fills edit, veil, unveil, hidesUsage and three fields
// of judgement, and may be called again for another model or worker. hid counts each
// hidden value by its type; nil where they were counted already.
func (pl *plan) splice(hid func(kind string)) {
	edit, r := &pl.edit, &pl.req
	edit.Reset()
	if pl.model != pl.asked {
		openai.SetModel(edit, r, pl.model)
	}
	openai.StripHandover(edit, r)
	openai.RewriteHeads(edit, r)
	if d := decisionOf(pl.verdict); d != nil {
		for i := range effects {
			effects[i].apply(edit, r, d, pl.state.models[pl.model].Reasoning, &pl.judgement)
		}
	}
	if pl.unveil = nil; redacts(pl.verdict, &pl.state.settings.Classify) {
		restore := pl.state.settings.Guards.Restore
		redact(edit, r, &pl.reading, &pl.verdict.PII, &pl.veil, restore, hid)
		pl.judgement.redacted, pl.judgement.redactedBy = pl.veil.Count, pl.veil.Counts()
		if restore {
			pl.unveil = answer.NewUnveiler(&pl.veil, pl.route.Kind)
		}
	}
	if salt := &pl.placing.salt; salt.own && !salt.left {
		openai.SetCacheSalt(edit, r, salt.text)
	}
	if pl.hidesUsage = r.Stream && pl.route.CountsUsage() && !r.Usage.Include && !r.Usage.Continuous; pl.hidesUsage {
		openai.AskUsage(edit, r)
	}
}

// handsOver says whether a prefill worker may compute the prompt: there is one, and one
// worker can begin this request and another answer it.
func (pl *plan) handsOver() bool { return pl.state.handsOver && pl.req.HandsOver() }

// forgetText gives the verdict back and clears all that was made of the body's text. It
// drops memory beyond what ordinary requests need.
func (pl *plan) forgetText() {
	if pl.verdict != nil {
		pl.verdict.Release()
		pl.verdict = nil
	}
	pl.reading.Texts = emptied(pl.reading.Texts, 4096)
	pl.edit.Reset()
	if cap(pl.plain) > 64<<10 {
		pl.plain = nil
	}
	pl.plain = pl.plain[:0]
	pl.veil = answer.Veil{} // its values are the client's
}

// forgetBody lets go of the body: nothing is sent again.
func (pl *plan) forgetBody() {
	pl.forgetText()
	pl.placing.giveBack()
	pl.req.Reset() // its fields are sub-slices of the body
	pl.body = nil
}

// forget makes pl ready for another request.
func (pl *plan) forget() {
	pl.forgetText()
	pl.placing.forget()
	// req is emptied by its next parse
	*pl = plan{req: pl.req, reading: classify.Request{Texts: pl.reading.Texts}, plain: pl.plain, edit: pl.edit, placing: pl.placing}
}

// emptied returns list with length 0, or nil where its capacity is above most elements.
func emptied[S ~[]E, E any](list S, most int) S {
	if cap(list) > most {
		return nil
	}
	clear(list)
	return list[:0]
}
