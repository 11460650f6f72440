// Tests of the lease: one leads, all hear of each other, and nothing is believed of what is no number.

package scale

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"kvasir/planner/scale/scaletest"
)

// meeting are Kvasirs before one API server, with a clock that is made up.
type meeting struct {
	t   *testing.T
	api *scaletest.Server
	now time.Time
}

func meet(t *testing.T) *meeting {
	return &meeting{t, scaletest.Start(t), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (m *meeting) join(s *Scaler, rate float64) Group {
	m.t.Helper()
	g, err := s.Meet(m.t.Context(), m.now, rate)
	if err != nil {
		m.t.Fatal(err)
	}
	return g
}

func TestMeet(t *testing.T) {
	m := meet(t)
	a, b := start(t, m.api, nil), start(t, m.api, nil)
	if g := m.join(a, 3); !g.Leads || g.Leader != a.id || g.Size != 1 || g.Others != 0 {
		t.Errorf("the first one: %+v", g)
	}
	if g := m.join(b, 4); g.Leads || g.Leader != a.id {
		t.Errorf("the second one: %+v", g)
	}
	for range 5 {
		m.now = m.now.Add(20 * time.Second)
		m.join(a, 3)
		m.join(b, 4.5)
	}
	m.now = m.now.Add(20 * time.Second)
	if g := m.join(a, 3); !g.Leads || g.Others != 4.5 || g.Size != 2 {
		t.Errorf("the leader: %+v", g)
	}
	if g := m.join(b, 4.5); g.Leads || g.Others != 3 || g.Size != 2 {
		t.Errorf("the other: %+v", g)
	}
	// The leader dies. The other one waits a term, and then leads alone.
	for i := range 3 {
		m.now = m.now.Add(20 * time.Second)
		g := m.join(b, 4.5)
		if last := i == 2; g.Leads != last {
			t.Errorf("%d s after the leader's last word: %+v", 20*(i+1), g)
		}
	}
	m.now = m.now.Add(20 * time.Second)
	if g := m.join(b, 4.5); !g.Leads || g.Size != 1 || g.Others != 0 {
		t.Errorf("the one that is left: %+v", g)
	}
	// The dead one was only asleep. It must know by itself that it does not lead any more.
	if a.Leads(m.now) {
		t.Error("two lead")
	}
	if g := m.join(a, 3); g.Leads || g.Leader != b.id {
		t.Errorf("it wakes up: %+v", g)
	}
	// One that ends says so.
	if err := b.Close(t.Context(), m.now); err != nil {
		t.Fatal(err)
	}
	m.now = m.now.Add(time.Second)
	if g := m.join(a, 3); !g.Leads || g.Size != 1 {
		t.Errorf("after the leader has gone: %+v", g)
	}
	if err := a.Close(t.Context(), m.now); err != nil {
		t.Fatal(err)
	}
	o := m.api.Get(leases)
	if said := fmt.Sprint(o["metadata"].(scaletest.Object)["annotations"]); said != "map[]" {
		t.Errorf("they leave %s", said)
	}
}

// Of two that would begin to lead at once, one does.
func TestMeetAtOnce(t *testing.T) {
	m := meet(t)
	m.api.Put(leases, scaletest.Object{"spec": scaletest.Object{"holderIdentity": "gone"}})
	a, b := start(t, m.api, nil), start(t, m.api, nil)
	m.join(a, 0)
	m.join(b, 0)
	m.now = m.now.Add(2 * time.Minute)
	between := true
	m.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && between {
			between = false
			if g := m.join(b, 0); !g.Leads { // it comes between a's question and a's patch
				t.Errorf("%+v", g)
			}
		}
		return false
	})
	if g := m.join(a, 0); g.Leads || g.Leader != b.id || a.Leads(m.now) || !b.Leads(m.now) {
		t.Errorf("two lead: %+v", g)
	}
}

// Who cannot reach the API server does not lead for longer than its term.
func TestMeetPartition(t *testing.T) {
	m := meet(t)
	a := start(t, m.api, nil)
	m.join(a, 1)
	m.api.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		scaletest.Refuse(w, 500, "InternalError", "etcd is away")
		return true
	})
	for _, c := range []struct {
		after time.Duration
		leads bool
	}{{30 * time.Second, true}, {29 * time.Second, true}, {2 * time.Second, false}} {
		m.now = m.now.Add(c.after)
		if g, err := a.Meet(t.Context(), m.now, 1); err == nil || g.Leads != c.leads || a.Leads(m.now) != c.leads {
			t.Errorf("%v: %+v, %v", c.after, g, err)
		}
	}
}

// What stands in the annotations may be anybody's.
func TestMeetNonsense(t *testing.T) {
	m := meet(t)
	annotations := scaletest.Object{"helm.sh/chart": "kvasir"}
	for i, text := range []string{"", "{", `{"rate":1e300}`, `{"rate":-5}`, `{"rate":"many"}`, strings.Repeat("x", 5000)} {
		annotations[fmt.Sprint(annotation, i)] = text
	}
	m.api.Put(leases, scaletest.Object{"metadata": scaletest.Object{"annotations": annotations}})
	a := start(t, m.api, nil)
	for range 3 {
		if g := m.join(a, 1); !g.Leads || g.Others != 0 {
			t.Errorf("%+v", g)
		}
		m.now = m.now.Add(2 * time.Minute)
	}
	m.now = m.now.Add(time.Hour)
	m.join(a, 1)
	left := m.api.Get(leases)["metadata"].(scaletest.Object)["annotations"].(scaletest.Object)
	if len(left) != 2 || left["helm.sh/chart"] != "kvasir" {
		t.Errorf("left are %v", left)
	}
}

func FuzzRate(f *testing.F) {
	f.Add(`{"name":"a_1","rate":12.5,"beat":7}`)
	f.Add(`{"rate":1e999}`)
	f.Fuzz(func(t *testing.T, text string) {
		if rate := rateOf(text); !(rate >= 0 && rate <= mostRate) {
			t.Errorf("%q: %v", text, rate)
		}
	})
}
