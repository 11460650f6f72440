// Scaling: what is wanted, written to objects of Kubernetes as their numbers of replicas.

// Package scale writes how many workers are wanted to what has them in Kubernetes: Deployments, StatefulSets and
// DynamoGraphDeployments. Of several Kvasirs one does it.
//
//	s := scale.New(&scale.Options{Targets: targets, Lease: "kvasir-planner", Term: 3 * time.Minute})
//	group, err := s.Meet(ctx, clock, rate)   // who does it, and what comes to the others
//	seen, err := s.Look(ctx)                 // what there is
//	changed, err := s.Apply(ctx, seen, want) // what is wanted
//
// Nothing is written that the API server has not told us before: each patch names the version of the object that it is
// for, and the API server refuses it where somebody else was faster.
package scale

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"kvasir/discovery/kubeapi"
	"kvasir/kvroute"
	"kvasir/kvroute/replay"
)

// Options say what is scaled, and by whom.
type Options struct {
	Kubeconfig, Namespace string // as kubeapi.New is told
	Targets               Targets
	Lease                 string        // where several Kvasirs meet
	Term                  time.Duration // for how long one of them leads without renewing it
	DryRun                bool          // the API server says what it would do, and does nothing
}

// Targets are those of the roles that have one.
type Targets map[kvroute.Role]Target

// A Scaler knows an API server. It is used by one goroutine.
type Scaler struct {
	options Options
	api     *kubeapi.API
	id      string // of this Kvasir: its host, and what tells it from the one before on it
	lease   lease
}

// scheme has what answers of the API server are that are no objects.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	s := kubeapi.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
})

// New returns a scaler; it asks nothing yet.
func New(o *Options) *Scaler {
	host, err := os.Hostname()
	if err != nil || len(host) > 200 {
		host = "kvasir"
	}
	var mark [4]byte
	_, _ = rand.Read(mark[:]) // it does not fail
	s := &Scaler{options: *o, api: kubeapi.New(o.Kubeconfig, o.Namespace, scheme).Bound(mostReply)}
	s.lease.mark = hex.EncodeToString(mark[:])
	s.id = host + "_" + s.lease.mark
	return s
}

// mostReply bounds an answer, in bytes; etcd takes objects of 1.5 MB.
const mostReply = 4 << 20

// callTimeout is for one question to the API server.
const callTimeout = 10 * time.Second

// Seen is what the targets have, by role.
type Seen map[kvroute.Role]State

// Fleet is f with the replicas that the targets are to have; other roles stay as they are.
func (s Seen) Fleet(f replay.Fleet) replay.Fleet {
	for role, state := range s {
		*f.Of(role) = state.Replicas
	}
	return f
}

// Got is how far the targets have got, all together.
type Got struct{ Updated, Ready int }

// Got is it.
func (s Seen) Got() (g Got) {
	for _, state := range s {
		g.Updated += state.updated
		g.Ready += state.Ready
	}
	return g
}

// Changing says what is under way at one of them; "": nothing.
func (s Seen) Changing() string {
	for _, role := range roles {
		if state, has := s[role]; has && state.Changing != "" {
			return role.String() + ": " + state.Changing
		}
	}
	return ""
}

var roles = [...]kvroute.Role{kvroute.Both, kvroute.Prefill, kvroute.Decode}

// Look asks what the targets have.
func (s *Scaler) Look(ctx context.Context) (Seen, error) {
	seen := Seen{}
	for _, role := range roles {
		target, has := s.options.Targets[role]
		if !has {
			continue
		}
		state, err := s.look(ctx, &target)
		if err != nil {
			return nil, err
		}
		seen[role] = state
	}
	return seen, nil
}

func (s *Scaler) look(ctx context.Context, t *Target) (State, error) {
	body, err := s.ask(ctx, &question{t.kind.group, "get", t.kind.plural, t.String()}, func(r *rest.RESTClient, c *kubeapi.Client) *rest.Request {
		return r.Get().Namespace(c.Namespace).Resource(t.kind.plural).Name(t.name)
	})
	if err != nil {
		return State{}, err
	}
	state, err := t.kind.read(t, body)
	if err != nil {
		return State{}, fmt.Errorf("cannot read %s: %w", t, err)
	}
	if state.version == "" {
		return State{}, fmt.Errorf("cannot read %s: the answer is no object", t)
	}
	return state, nil
}

// A Change is one that was written.
type Change struct {
	Role     kvroute.Role
	Target   string
	From, To int
}

// mostTries is how often a patch is tried that somebody else was faster than. Controllers write the status of an object,
// and so make a version of it, while nobody touches its replicas.
const mostTries = 4

// Apply gives the targets what is wanted, as long as they are to have what was seen and no change of them is under way.
// It returns what it has changed also where it has not changed all.
func (s *Scaler) Apply(ctx context.Context, seen Seen, want replay.Fleet) (changed []Change, err error) {
	var problems []error
	for _, role := range roles {
		before, has := seen[role]
		to := *want.Of(role)
		if !has || before.Replicas == to {
			continue
		}
		target := s.options.Targets[role]
		ours := slices.ContainsFunc(changed, func(c Change) bool { return s.options.Targets[c.Role].isPartOf(target) })
		written, err := s.write(ctx, &target, &before, to, ours)
		if err != nil {
			problems = append(problems, err)
		}
		if written {
			changed = append(changed, Change{role, target.String(), before.Replicas, to})
		}
	}
	return changed, errors.Join(problems...)
}

// write scales one target. Nothing is written, without an error, where another change has begun since it was seen.
// ours: we have just changed another service of the same object.
func (s *Scaler) write(ctx context.Context, t *Target, seen *State, to int, ours bool) (written bool, err error) {
	for range mostTries {
		now, err := s.look(ctx, t)
		switch {
		case err != nil:
			return false, err
		case now.Replicas == to || now.Changing != "" && seen.Changing == "" && !ours:
			return false, nil
		case now.Replicas != seen.Replicas:
			return false, fmt.Errorf("cannot scale %s: somebody else has set %d replicas meanwhile; let one of the two do it alone", t, now.Replicas)
		}
		if err = s.patch(ctx, t, now.version, to, s.options.DryRun); !apierrors.IsConflict(err) {
			return err == nil, err
		}
	}
	return false, fmt.Errorf("cannot scale %s: somebody changes it all the time, after %d tries", t, mostTries)
}

func (s *Scaler) patch(ctx context.Context, t *Target, version string, to int, dry bool) error {
	body, err := json.Marshal(t.kind.patch(t, version, to))
	if err != nil {
		return fmt.Errorf("cannot scale %s: %w", t, err)
	}
	_, err = s.ask(ctx, &question{t.kind.group, "patch", t.kind.resource, t.String()}, func(r *rest.RESTClient, c *kubeapi.Client) *rest.Request {
		request := r.Patch(types.MergePatchType).Namespace(c.Namespace).Resource(t.kind.plural).Name(t.name).Body(body)
		if t.kind.part != "" {
			request = request.SubResource(t.kind.part)
		}
		if dry {
			request = request.Param("dryRun", metav1.DryRunAll)
		}
		return request
	})
	return err
}

// ask asks once, and says of an error what it means.
func (s *Scaler) ask(ctx context.Context, q *question, by func(*rest.RESTClient, *kubeapi.Client) *rest.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c, err := s.api.Client()
	if err != nil {
		return nil, err
	}
	r, err := c.For(q.group)
	if err != nil {
		return nil, fmt.Errorf("cannot %s %s: %w", q.verb, q.what, err)
	}
	result := by(r, c).MaxRetries(0).Do(ctx)
	err = result.Error() // which reads what the server says, as Raw does not
	if err == nil {
		return result.Raw()
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsUnauthorized(err) {
		s.api.Doubt(c)
	}
	return nil, trouble(ctx, q, c, err)
}
