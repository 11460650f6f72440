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
//  2. Clocks are not compared. Another one leads for as long as what it wrote changes within a term, as seen from here:
//     counted from when an answer with it had come to when the next question was sent. We lead until a term after we
//     began to ask. So we stop before anybody else begins, however slow the API server is. The longer of the terms
//     counts, ours or the one that the leader wrote: in an update it may have another one.
//  3. Who cannot reach the API server cannot scale either: a partition has no second leader that could do anything.
//  4. Each of them writes how many requests come to it as an annotation of its own. What has not changed since we look,
//     or for a term, is of one that is gone.
type lease struct {
	mark  string    // of our annotation
	until time.Time // we lead until then
	beats int       // that we wrote

	leader  string        // whose record it is, and what it said
	record  string        //
	since   time.Time     // from when on the record is as it is
	term    time.Duration // for how long it is believed
	members map[string]*member
	group   Group // as it was known last
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

		LeaseDurationSeconds *int64
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
	mostTerm    = 30 * 24 * time.Hour
)

var coordination = schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}

// Meet tells the others how many requests a second come here, hears what comes to them, and says who leads. Where it
// cannot, the others are those that were known last.
func (s *Scaler) Meet(ctx context.Context, clock func() time.Time, rate float64) (Group, error) {
	err := s.meet(ctx, clock, rate)
	s.lease.group.Leads = s.Leads(clock())
	return s.lease.group, err
}

func (s *Scaler) meet(ctx context.Context, clock func() time.Time, rate float64) error {
	l := &s.lease
	l.beats++
	for range mostTries {
		asked := clock()
		o, err := s.readLease(ctx)
		if apierrors.IsNotFound(err) {
			if err = s.createLease(ctx, asked, rate); apierrors.IsAlreadyExists(err) {
				continue
			}
			if err == nil {
				l.until, l.group = asked.Add(s.options.Term), Group{Leader: s.id, Size: 1}
			}
			return err
		}
		if err != nil {
			return err
		}
		l.hear(o, clock(), s.options.Term)
		leads := l.leader == s.id || l.leader == "" || asked.Sub(l.since) >= l.term
		if !leads {
			l.until = time.Time{} // another one does, whatever we were sure of
		}
		err = s.writeLease(ctx, o, leads, asked, rate)
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return err
		}
		if leads {
			l.until, l.leader = asked.Add(s.options.Term), s.id
		}
		l.group = Group{Leader: l.leader}
		l.group.Others, l.group.Size = l.others(clock(), l.term)
		return nil
	}
	return fmt.Errorf("cannot write Lease %s: others were faster, %d times", s.options.Lease, mostTries)
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
	l.term = term
	if n := o.Spec.LeaseDurationSeconds; n != nil && *n > 0 {
		l.term = max(term, time.Duration(min(*n, int64(mostTerm/time.Second)))*time.Second)
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
		if _, is := o.Metadata.Annotations[annotation+mark]; !is || now.Sub(later(m.changed, m.first)) > forgotten*l.term {
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
		map[string]any{"holderIdentity": s.id, "leaseDurationSeconds": int64((s.options.Term + time.Second - 1) / time.Second), "renewTime": at}
}

func (s *Scaler) createLease(ctx context.Context, now time.Time, rate float64) error {
	annotations, spec := s.ours(now, rate)
	spec["acquireTime"], spec["leaseTransitions"] = spec["renewTime"], 0
	return s.sendLease(ctx, "create", s.newLease(annotations, spec), false)
}

func (s *Scaler) newLease(annotations, spec map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": coordination.String(), "kind": "Lease", "metadata": map[string]any{"name": s.options.Lease, "annotations": annotations}, "spec": spec,
	}
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
	return s.sendLease(ctx, "patch", patch, false)
}

func (s *Scaler) sendLease(ctx context.Context, verb string, object map[string]any, dry bool) error {
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("cannot write Lease %s: %w", s.options.Lease, err)
	}
	_, err = s.ask(ctx, s.leaseQuestion(verb), func(r *rest.RESTClient, c *kubeapi.Client) *rest.Request {
		request := r.Patch(types.MergePatchType).Name(s.options.Lease)
		if verb == "create" {
			request = r.Post().SetHeader("Content-Type", "application/json")
		}
		if dry {
			request = request.Param("dryRun", metav1.DryRunAll)
		}
		return request.Namespace(c.Namespace).Resource("leases").Body(body)
	})
	return err
}

// Leads says whether we still do.
func (s *Scaler) Leads(now time.Time) bool { return s.Left(now) > 0 }

// Left is for how long we lead from now on, unless the lease is renewed; nothing may be under way after that.
func (s *Scaler) Left(now time.Time) time.Duration { return max(s.lease.until.Sub(now), 0) }

// Close takes away what we said and, if we lead, lets the next one lead at once.
func (s *Scaler) Close(ctx context.Context, now time.Time) error {
	defer s.api.Close()
	if s.options.Lease == "" || s.lease.beats == 0 {
		return nil
	}
	led := s.Leads(now)
	s.lease.until = time.Time{}
	for range mostTries {
		metadata := map[string]any{"annotations": map[string]any{annotation + s.lease.mark: nil}}
		patch := map[string]any{"metadata": metadata}
		if led {
			o, err := s.readLease(ctx)
			if err != nil {
				return err
			}
			if o.Spec.HolderIdentity != nil && *o.Spec.HolderIdentity == s.id {
				metadata["resourceVersion"] = o.Metadata.ResourceVersion
				patch["spec"] = map[string]any{"holderIdentity": nil, "renewTime": nil, "acquireTime": nil, "leaseDurationSeconds": nil}
			}
		}
		// The others write what comes to them into the same object.
		if err := s.sendLease(ctx, "patch", patch, false); !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("cannot write Lease %s: others were faster, %d times", s.options.Lease, mostTries)
}
