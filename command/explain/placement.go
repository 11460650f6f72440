// What explain finds of placement: where the request would go, which only a running Kvasir knows.

package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kvasir/classify"
	"kvasir/command/listener"
	"kvasir/config"
	"kvasir/proxy"
	"kvasir/wording"
)

// A placementAsked is where the request would go, and at what price every
// candidate was.
type placementAsked struct {
	Policy  string   `json:"policy"`
	Workers []string `json:"workers,omitempty"` // the model's workers in the configuration, where no Kvasir could be asked

	Found *proxy.PlacementExplained `json:"found,omitempty"` // nil: nobody was asked
	None  string                    `json:"none,omitempty"`  // why not
}

// explainWithin bounds asking the running Kvasir: it may ask a worker for tokens.
const explainWithin = 3 * time.Second

func placementOf(c *config.Config, route string, body []byte, v *classify.Verdict, r *classify.Request) placementAsked {
	a := placementAsked{Policy: c.Routing.Policy}
	if noModel(v) {
		a.None = "no model is asked"
		return a
	}
	var err error
	if a.Found, err = askPlacement(&c.Server, route, body); err != nil {
		a.None = err.Error()
		a.Workers = workersOf(c, answeringModel(c, v, r))
	}
	return a
}

// askPlacement asks the Kvasir that serves on an admin address.
func askPlacement(server *config.Server, route string, body []byte) (*proxy.PlacementExplained, error) {
	admin := server.Admin
	if admin == "" {
		return nil, fmt.Errorf("cannot ask what workers hold: server.admin is off")
	}
	ctx, cancel := context.WithTimeout(context.Background(), explainWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/explain?route="+url.QueryEscape(route), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if err := listener.ShowKey(req, string(server.AdminKey)); err != nil {
		return nil, err
	}
	resp, err := listener.Client(admin, nil).Do(req)
	if err != nil {
		return nil, fmt.Errorf("no Kvasir answers at server.admin %s, so nobody knows what workers hold", wording.Quote(admin))
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, fmt.Errorf("the Kvasir at server.admin %s broke off: %w", wording.Quote(admin), err)
	}
	if resp.StatusCode != http.StatusOK {
		var refusal struct {
			Error struct{ Message string }
		}
		_ = json.Unmarshal(text, &refusal)
		return nil, fmt.Errorf("server.admin %s answers %d %s", wording.Quote(admin), resp.StatusCode, refusal.Error.Message)
	}
	found := &proxy.PlacementExplained{}
	if err := json.Unmarshal(text, found); err != nil {
		return nil, fmt.Errorf("what answers at server.admin %s is not Kvasir, or another version of it", wording.Quote(admin))
	}
	return found, nil
}

// workersOf are the workers that may serve a model: those that the configuration
// says so of, and those whose models it does not list.
func workersOf(c *config.Config, model string) (names []string) {
	for _, w := range c.Workers {
		if len(w.Models) == 0 || slices.Contains(w.Models, model) {
			names = append(names, w.Name)
		}
	}
	for _, s := range c.Simulate {
		if s.Model == model {
			names = append(names, s.Name)
		}
	}
	return names
}

func (a placementAsked) text() string {
	if a.Found == nil {
		how := "by policy " + a.Policy
		if len(a.Workers) > 0 {
			how += ", among " + strings.Join(a.Workers, ", ")
		}
		return how + "; not asked: " + a.None
	}
	f := a.Found
	how := fmt.Sprintf("by policy %s, %d prompt tokens", f.Policy, f.Tokens)
	switch {
	case f.Exact:
		how += " (" + f.Source + ")"
	case f.Approximate != "":
		how += " (estimated; approximate: " + f.Approximate + ")"
	default:
		how += " (estimated)"
	}
	if f.Problem != "" {
		how += "\n  nobody takes it now: " + f.Problem
	} else if f.Why != f.Policy {
		how += ", chosen as " + f.Why
	}
	for _, c := range f.Candidates {
		name := c.Worker
		if c.Rank != nil {
			name += fmt.Sprintf(" rank %d", *c.Rank)
		}
		mark := " "
		if c.Chosen {
			mark = "*"
		}
		o := c.Overlap
		how += fmt.Sprintf("\n  %s %-16s %-7s holds %d of %d blocks (device %d, host %d, disk %d, predicted %d), cost %.3f", mark, name, c.Leg,
			max(o.Device+o.Host+o.Disk, o.Predicted), o.Of, o.Device, o.Host, o.Disk, o.Predicted, c.Cost)
		if c.TTFT > 0 {
			how += fmt.Sprintf(", first byte in %.1f ms", c.TTFT)
		}
		how += fmt.Sprintf(", %d requests", c.Load.Requests)
		if c.Slow > 1 {
			how += fmt.Sprintf(", %.4g times slower", c.Slow)
		}
		if c.Aside {
			how += ", aside"
		}
		if c.Hardware != "" {
			how += " (" + c.Hardware + ")"
		}
	}
	return how
}
