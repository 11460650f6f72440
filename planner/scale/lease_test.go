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

func (m *meeting) clock() time.Time { return m.now }

func (m *meeting) join(s *Scaler, rate float64) Group {
	m.t.Helper()
	g, err := s.Meet(m.t.Context(), m.clock, rate)
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
		if g, err := a.Meet(t.Context(), m.clock, 1); err == nil || g.Leads != c.leads || a.Leads(m.now) != c.leads {
			t.Errorf("%v: %+v, %v", c.after, g, err)
		}
	}
}

// A slow API server lets nobody begin before the one that led has stopped.
func TestMeetSlowly(t *testing.T) {
	m := meet(t)
	a, b := start(t, m.api, nil), start(t, m.api, nil)
	// after has some seconds pass in the first question of one, and then something happen before it is answered.
	after := func(s *Scaler, happens func()) {
		first := true
		m.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
			if first && r.Method == http.MethodGet {
				first = false
				m.now = m.now.Add(9 * time.Second)
				happens()
			}
			return false
		})
		m.join(s, 1)
		m.api.Before(nil)
	}
	m.join(a, 1)
	m.join(b, 1)
	after(b, func() { m.join(a, 1) })
	for m.now = m.now.Add(45 * time.Second); ; m.now = m.now.Add(time.Second) {
		leads := a.Leads(m.now)
		if g := m.join(b, 1); g.Leads && leads {
			t.Fatal("two lead")
		} else if g.Leads {
			break
		}
	}
	// How long one leads counts from before it asked: what it wrote was written at any time after that.
	began := m.now
	after(b, func() {})
	if left := b.Left(began); left != time.Minute {
		t.Errorf("it leads until %v after it began", left)
	}
}

// In an update the leader may have a longer term than the one that comes after it.
func TestMeetOtherTerm(t *testing.T) {
	m := meet(t)
	a, b := start(t, m.api, func(o *Options) { o.Term = 10*time.Minute + time.Millisecond }), start(t, m.api, nil)
	m.join(a, 1)
	m.join(b, 1)
	for range 10 {
		if m.now = m.now.Add(time.Minute); m.join(b, 1).Leads {
			t.Fatal("two lead")
		}
	}
	if m.now = m.now.Add(2 * time.Second); !m.join(b, 1).Leads {
		t.Error("nobody leads")
	}
	spec := scaletest.Object{"holderIdentity": "a", "renewTime": "now", "leaseDurationSeconds": 1 << 62}
	m.api.Put(leases, scaletest.Object{"spec": spec})
	c := start(t, m.api, nil)
	m.join(c, 1)
	if m.now = m.now.Add(mostTerm); !m.join(c, 1).Leads {
		t.Error("a term without end is believed")
	}
}

// Somebody else's name in the lease ends ours, whatever time is left.
func TestMeetDeposed(t *testing.T) {
	m := meet(t)
	a := start(t, m.api, nil)
	m.join(a, 1)
	m.api.Put(leases, scaletest.Object{"spec": scaletest.Object{"holderIdentity": "by hand", "renewTime": "now"}})
	m.now = m.now.Add(time.Second)
	if g := m.join(a, 1); g.Leads || a.Leads(m.now) {
		t.Errorf("two lead: %+v", g)
	}
}

// While the API server is away the others still get what they got.
func TestMeetRemembers(t *testing.T) {
	m := meet(t)
	a, b := start(t, m.api, nil), start(t, m.api, nil)
	for range 3 {
		m.join(a, 3)
		m.join(b, 4)
		m.now = m.now.Add(20 * time.Second)
	}
	m.api.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		scaletest.Refuse(w, 500, "InternalError", "etcd is away")
		return true
	})
	m.now = m.now.Add(time.Hour)
	if g, err := b.Meet(t.Context(), m.clock, 4); err == nil || g.Others != 3 || g.Size != 2 || g.Leader != a.id || g.Leads {
		t.Errorf("%+v, %v", g, err)
	}
}

// The lease is given back also where the others write into it at the same time.
func TestCloseAtOnce(t *testing.T) {
	m := meet(t)
	a, b := start(t, m.api, nil), start(t, m.api, nil)
	m.join(a, 1)
	m.join(b, 1)
	times := 2
	m.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && times > 0 {
			times--
			m.api.Put(leases, m.api.Get(leases))
		}
		return false
	})
	if err := a.Close(t.Context(), m.now); err != nil {
		t.Fatal(err)
	}
	if g := m.join(b, 1); !g.Leads {
		t.Errorf("%+v", g)
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
