// The requests that were kept: as a list, one of them, and what was decided of them.

package page

import (
	"math"
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"kvasir/openai"
	"kvasir/proxy/record"
	"kvasir/proxy/roster"
)

// fewRequests are listed where the client does not say how many.
const fewRequests = 200

// A filter says which requests are asked for; what is empty does not matter.
type filter struct{ model, worker, key, outcome string }

func (f *filter) holds(r *record.Record) bool {
	return (f.model == "" || r.Model == f.model || r.Asked == f.model) && (f.worker == "" || r.Worker == f.worker || r.Prefill == f.worker) &&
		(f.key == "" || r.Key == f.key) && (f.outcome == "" || string(r.Outcome()) == f.outcome)
}

type requestsAnswer struct {
	Requests []Short `json:"requests"`
	Kept     int     `json:"kept"`
	Dropped  int     `json:"dropped"` // were kept before
}

// requests is GET /api/requests, the newest first.
func (p *Page) requests(ctx *fasthttp.RequestCtx) (any, *openai.Error) {
	args := ctx.QueryArgs()
	text := func(name string) string { return string(args.Peek(name)) }
	f := filter{model: text("model"), worker: text("worker"), key: text("key"), outcome: text("outcome")}
	if f.outcome != "" && !slices.Contains(record.Outcomes(), record.Outcome(f.outcome)) {
		return nil, openai.Invalid("outcome", "Invalid 'outcome': it is one of %v", record.Outcomes())
	}
	limit, refused := number(args, "limit", fewRequests, mostKept)
	if refused != nil {
		return nil, refused
	}
	before, refused := number(args, "before", math.MaxInt64, math.MaxInt64)
	if refused != nil {
		return nil, refused
	}
	out := requestsAnswer{Requests: []Short{}}
	p.kept.each(before, func(seq uint64, r *record.Record) bool {
		if f.holds(r) {
			out.Requests = append(out.Requests, shortOf(seq, r))
		}
		return uint64(len(out.Requests)) < limit
	})
	out.Kept, out.Dropped = p.kept.count()
	return out, nil
}

// number reads a number from 1 of the query.
func number(args *fasthttp.Args, name string, standard, most uint64) (uint64, *openai.Error) {
	text := string(args.Peek(name))
	if text == "" {
		return standard, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		return 0, openai.Invalid(name, "Invalid '%s': it is a number from 1", name)
	}
	return min(n, most), nil
}

// request is GET /api/requests/{id}: the newest of that id, or the one of that number.
func (p *Page) request(ctx *fasthttp.RequestCtx) (any, *openai.Error) {
	id := plain(ctx, "id")
	thresholds := p.options.Thresholds()
	var found *Full
	p.kept.each(math.MaxInt64, func(seq uint64, r *record.Record) bool {
		if r.ID == id {
			found = fullOf(seq, r, &thresholds)
		}
		return found == nil
	})
	if seq, err := strconv.ParseUint(id, 10, 63); err == nil && found == nil {
		p.kept.look(seq, func(seq uint64, r *record.Record) bool {
			found = fullOf(seq, r, &thresholds)
			return false
		})
	}
	if found == nil {
		return nil, &openai.Error{
			Status: 404, Type: "invalid_request_error", Code: "request_not_found", Param: "id",
			Message: "Of the last requests none is " + openai.Quoted(id) + ": it is under way, never was, or made room for others",
		}
	}
	return found, nil
}

// mostExamples bounds the requests that another threshold would have changed.
const mostExamples = 20

type decisionsAnswer struct {
	Of         int           `json:"of"` // requests that were judged
	Threshold  float64       `json:"threshold"`
	Asked      float64       `json:"asked_threshold"`
	Decisions  []decisionRow `json:"decisions"`
	Categories []categoryRow `json:"categories"`
	Confidence struct {
		Edges  []float64 `json:"edges"`
		Counts []int     `json:"counts"`
	} `json:"confidence"`
	Change struct {
		Count    int       `json:"count"`
		Examples []example `json:"examples"`
	} `json:"would_change"`
}

type decisionRow struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Model string `json:"model"` // of the last request
}

type categoryRow struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

type example struct {
	Seq        uint64      `json:"seq"`
	ID         string      `json:"id"`
	Time       roster.Time `json:"time"`
	Category   string      `json:"category"`
	Confidence float64     `json:"confidence"`
	Decision   string      `json:"decision_now"`
}

// bins are how many the confidences are counted in.
const bins = 20

// decisions is GET /api/decisions: what was decided of the requests that are kept, and of how many
// the category would be named at another threshold and not at this one, or the other way round.
func (p *Page) decisions(ctx *fasthttp.RequestCtx) (any, *openai.Error) {
	out := &decisionsAnswer{Threshold: p.options.Thresholds().Category, Decisions: []decisionRow{}, Categories: []categoryRow{}}
	out.Asked = out.Threshold
	if text := string(ctx.QueryArgs().Peek("threshold")); text != "" {
		asked, err := strconv.ParseFloat(text, 64)
		if err != nil || !(asked >= 0 && asked <= 1) {
			return nil, openai.Invalid("threshold", "Invalid 'threshold': it is a number from 0 to 1")
		}
		out.Asked = asked
	}
	for i := range bins + 1 {
		out.Confidence.Edges = append(out.Confidence.Edges, rounded(float64(i)/bins))
	}
	out.Confidence.Counts, out.Change.Examples = make([]int, bins), []example{}
	p.kept.each(math.MaxInt64, func(seq uint64, r *record.Record) bool {
		out.count(seq, r)
		return true
	})
	slices.SortStableFunc(out.Decisions, func(a, b decisionRow) int { return b.Count - a.Count })
	slices.SortStableFunc(out.Categories, func(a, b categoryRow) int { return b.Count - a.Count })
	return out, nil
}

func (d *decisionsAnswer) count(seq uint64, r *record.Record) {
	j := &r.Judgement
	if !j.Judged {
		return
	}
	d.Of++
	if j.Decision != "" {
		i := slices.IndexFunc(d.Decisions, func(row decisionRow) bool { return row.Name == j.Decision })
		if i < 0 {
			i = len(d.Decisions)
			d.Decisions = append(d.Decisions, decisionRow{Name: j.Decision, Model: r.Model}) // the newest comes first
		}
		d.Decisions[i].Count++
	}
	if j.Category == "" {
		return
	}
	i := slices.IndexFunc(d.Categories, func(row categoryRow) bool { return row.Name == j.Category })
	if i < 0 {
		i = len(d.Categories)
		d.Categories = append(d.Categories, categoryRow{Name: j.Category})
	}
	d.Categories[i].Count++
	d.Confidence.Counts[min(max(int(j.Confidence*bins), 0), bins-1)]++
	if (j.Confidence >= d.Threshold) == (j.Confidence >= d.Asked) {
		return
	}
	if d.Change.Count++; len(d.Change.Examples) < mostExamples {
		d.Change.Examples = append(d.Change.Examples, example{seq, r.ID, roster.Time{Time: r.Began}, j.Category, rounded(j.Confidence), j.Decision})
	}
}
