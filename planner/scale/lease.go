// The lease: where several Kvasirs meet, say how many requests come to each, and agree on the one that scales.

package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"kvasir/discovery/kubeapi"
)

// A lease is what is known of the Lease that they meet at.
//
//  1. Who leads writes its name and the time into it, each time with the version that it has read: of two that write at
//     once the API server takes one.
//  2. Clocks are not compared. Another one leads for as long as what it wrote changes within a term, as seen from here,
//     and we lead until a term after we began to write it. So we stop before anybody else begins.
//  3. Who cannot reach the API server cannot scale either: a partition has no second leader that could do anything.
//  4. Each of them writes how many requests come to it as an annotation of its own. What has not changed since we look,
//     or for a term, is of one that is gone.
type lease struct {
	mark  string    // of our annotation
	until time.Time // we lead until then
	beats int       // that we wrote

	leader  string    // whose record it is, and what it said
	record  string    //
	since   time.Time // from when on the record is as it is
	members map[string]*member
}

// member is another Kvasir, by its annotation.
type member struct {
	text    string
	rate    float64
	changed time.Time // zero: never since we look
	first   time.Time
}

// A Group are the Kvasirs that meet.
type Group struct {
	Leads  bool    // we scale
	Leader string  // who does; "": nobody yet
	Others float64 // requests a second that come to the others, together
	Size   int     // with us
}

// leaseObject is a Lease, as far as it is read.
type leaseObject struct {
	Metadata struct {
		ResourceVersion string
		Annotations     map[string]string
	}
	Spec struct {
		HolderIdentity   *string
		RenewTime        *string
		LeaseTransitions *int
	}
}

// said is the value of an annotation.
type said struct {
	Name string  `json:"name"`
	Rate float64 `json:"rate"` // requests a second
	Beat int     `json:"beat"` // that it is alive
}

const (
	annotation  = "planner.kvasir.dev/"
	mostMembers = 256      // that are listened to
	mostSaid    = 1024     // bytes of an annotation that is read
	mostRate    = 10000000 // that is believed
)

var coordination = schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}

// Meet tells the others how many requests a second come here, hears what comes to them, and says who leads.
func (s *Scaler) Meet(ctx context.Context, now time.Time, rate float64) (Group, error) {
	l := &s.lease
	l.beats++
	for range mostTries {
		began := time.Now()
		o, err := s.readLease(ctx)
		if apierrors.IsNotFound(err) {
			if err = s.createLease(ctx, now, rate); apierrors.IsAlreadyExists(err) {
				continue
			}
			if err == nil {
				l.until = now.Add(s.options.Term)
				return Group{Leads: true, Leader: s.id, Size: 1}, nil
			}
		}
		if err != nil {
			return Group{Leads: now.Before(l.until)}, err
		}
		l.hear(o, now, s.options.Term)
		leads := l.leader == s.id || l.leader == "" || now.Sub(l.since) >= s.options.Term
		err = s.writeLease(ctx, o, leads, now, rate)
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return Group{Leads: now.Before(l.until)}, err
		}
		if leads {
			// From before it was written, by a clock that does not jump.
			l.until, l.leader = now.Add(s.options.Term-time.Since(began)), s.id
		}
		g := Group{Leads: leads, Leader: l.leader, Size: 1}
		g.Others, g.Size = l.others(now, s.options.Term)
		return g, nil
	}
	return Group{Leads: now.Before(l.until)}, fmt.Errorf("cannot write Lease %s: others were faster, %d times", s.options.Lease, mostTries)
}

// hear takes in what the Lease says.
func (l *lease) hear(o *leaseObject, now time.Time, term time.Duration) {
	leader, record := "", ""
	if o.Spec.HolderIdentity != nil {
		leader, record = *o.Spec.HolderIdentity, *o.Spec.HolderIdentity
	}
	if o.Spec.RenewTime != nil {
		record += " " + *o.Spec.RenewTime
	}
	if record != l.record || l.since.IsZero() {
		l.leader, l.record, l.since = leader, record, now
	}
	if l.members == nil {
		l.members = map[string]*member{}
	}
	for key, text := range o.Metadata.Annotations {
		mark, is := strings.CutPrefix(key, annotation)
		if !is || mark == l.mark || len(text) > mostSaid {
			continue
		}
		m := l.members[mark]
		if m == nil {
			if len(l.members) >= mostMembers {
				continue
			}
			m = &member{text: text, first: now}
			l.members[mark] = m
		}
		if m.text != text {
			m.text, m.changed = text, now
		}
		m.rate = rateOf(text)
	}
	for mark, m := range l.members {
		if _, is := o.Metadata.Annotations[annotation+mark]; !is || now.Sub(later(m.changed, m.first)) > forgotten*term {
			delete(l.members, mark)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// forgotten is after how many terms the annotation of one that says nothing any more is taken away.
const forgotten = 4

// rateOf reads an annotation; 0 where it is none of ours.
func rateOf(text string) float64 {
	var v said
	if json.Unmarshal([]byte(text), &v) != nil || !(v.Rate > 0) || v.Rate > mostRate {
		return 0
	}
	return v.Rate
}

// others are the requests that come to those who are there, and how many we are together.
func (l *lease) others(now time.Time, term time.Duration) (rate float64, size int) {
	size = 1
	for _, m := range l.members {
		if !m.changed.IsZero() && now.Sub(m.changed) <= term {
			rate += m.rate
			size++
		}
	}
	return rate, size
}

func (s *Scaler) leaseQuestion(verb string) *question {
	return &question{coordination, verb, "leases", "Lease " + s.options.Lease}
}

func (s *Scaler) readLease(ctx context.Context) (*leaseObject, error) {
	body, err := s.ask(ctx, s.leaseQuestion("get"), func(r *rest.RESTClient, c *kubeapi.Client) *rest.Request {
		return r.Get().Namespace(c.Namespace).Resource("leases").Name(s.options.Lease)
	})
	if err != nil {
		return nil, err
	}
	var o leaseObject
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("cannot read Lease %s: %w", s.options.Lease, err)
	}
	if o.Metadata.ResourceVersion == "" {
		return nil, fmt.Errorf("cannot read Lease %s: the answer is no object", s.options.Lease)
	}
	return &o, nil
}

// ours are the annotation and, of who leads, the spec that we write.
func (s *Scaler) ours(now time.Time, rate float64) (annotations map[string]any, spec map[string]any) {
	if !(rate >= 0) || math.IsInf(rate, 0) {
		rate = 0
	}
	text, _ := json.Marshal(said{s.id, math.Round(rate*1000) / 1000, s.lease.beats}) // it holds no value that could fail
	at := now.UTC().Format(metav1.RFC3339Micro)
	return map[string]any{annotation + s.lease.mark: string(text)},
		map[string]any{"holderIdentity": s.id, "leaseDurationSeconds": int(max(s.options.Term/time.Second, 1)), "renewTime": at}
}

func (s *Scaler) createLease(ctx context.Context, now time.Time, rate float64) error {
	annotations, spec := s.ours(now, rate)
	spec["acquireTime"], spec["leaseTransitions"] = spec["renewTime"], 0
	return s.sendLease(ctx, "create", map[string]any{
		"apiVersion": coordination.String(), "kind": "Lease", "metadata": map[string]any{"name": s.options.Lease, "annotations": annotations}, "spec": spec,
	})
}

// writeLease renews what we say and, where we lead, the lease, under the version that was read.
func (s *Scaler) writeLease(ctx context.Context, o *leaseObject, leads bool, now time.Time, rate float64) error {
	annotations, spec := s.ours(now, rate)
	metadata := map[string]any{"annotations": annotations}
	patch := map[string]any{"metadata": metadata}
	if leads {
		metadata["resourceVersion"], patch["spec"] = o.Metadata.ResourceVersion, spec
		if o.Spec.HolderIdentity == nil || *o.Spec.HolderIdentity != s.id {
			transitions := 0
			if o.Spec.LeaseTransitions != nil {
				transitions = *o.Spec.LeaseTransitions + 1
			}
			spec["acquireTime"], spec["leaseTransitions"] = spec["renewTime"], transitions
		}
		for key := range o.Metadata.Annotations {
			if mark, is := strings.CutPrefix(key, annotation); is && mark != s.lease.mark && s.lease.members[mark] == nil && len(s.lease.members) < mostMembers {
				annotations[key] = nil // of one that is gone, or that said too much
			}
		}
	}
	return s.sendLease(ctx, "patch", patch)
}

func (s *Scaler) sendLease(ctx context.Context, verb string, object map[string]any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("cannot write Lease %s: %w", s.options.Lease, err)
	}
	_, err = s.ask(ctx, s.leaseQuestion(verb), func(r *rest.RESTClient, c *kubeapi.Client) *rest.Request {
		if verb == "create" {
			return r.Post().Namespace(c.Namespace).Resource("leases").Body(body).SetHeader("Content-Type", "application/json")
		}
		return r.Patch(types.MergePatchType).Namespace(c.Namespace).Resource("leases").Name(s.options.Lease).Body(body)
	})
	return err
}

// Leads says whether we still do.
func (s *Scaler) Leads(now time.Time) bool { return now.Before(s.lease.until) }

// Close takes away what we said and, if we lead, lets the next one lead at once.
func (s *Scaler) Close(ctx context.Context, now time.Time) error {
	defer s.api.Close()
	if s.options.Lease == "" || s.lease.beats == 0 {
		return nil
	}
	metadata := map[string]any{"annotations": map[string]any{annotation + s.lease.mark: nil}}
	patch := map[string]any{"metadata": metadata}
	if s.Leads(now) {
		o, err := s.readLease(ctx)
		if err != nil {
			return err
		}
		if o.Spec.HolderIdentity != nil && *o.Spec.HolderIdentity == s.id {
			metadata["resourceVersion"] = o.Metadata.ResourceVersion
			patch["spec"] = map[string]any{"holderIdentity": nil, "renewTime": nil, "acquireTime": nil, "leaseDurationSeconds": nil}
		}
	}
	s.lease.until = time.Time{}
	return s.sendLease(ctx, "patch", patch)
}
