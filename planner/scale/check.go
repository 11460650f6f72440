// Check: whether what is scaled is there, and may be scaled.

package scale

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Check asks what the targets and the Lease are, and whether we may write to them, by dry runs of what would change
// nothing: the API server says what it would say to a real one, admission included. what is what there is.
func (s *Scaler) Check(ctx context.Context, now time.Time) (what string, err error) {
	defer s.api.Close()
	var there []string
	var problems []error
	for _, role := range roles {
		target, has := s.options.Targets[role]
		if !has {
			continue
		}
		state, err := s.look(ctx, &target)
		if err == nil {
			err = s.patch(ctx, &target, state.version, state.Replicas, true)
		}
		if apierrors.IsConflict(err) {
			err = nil // its controller has written, and we might have as well
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		there = append(there, fmt.Sprintf("%s with %d of %d replicas ready", target, state.Ready, state.Replicas))
	}
	lease, err := s.checkLease(ctx, now)
	if err != nil {
		problems = append(problems, err)
	}
	return strings.Join(append(there, lease), "; "), errors.Join(problems...)
}

func (s *Scaler) checkLease(ctx context.Context, now time.Time) (what string, err error) {
	o, err := s.readLease(ctx)
	switch {
	case apierrors.IsNotFound(err):
		annotations, spec := s.ours(now, 0)
		return "Lease " + s.options.Lease + ", which will be made", s.sendLease(ctx, "create", s.newLease(annotations, spec), true)
	case err != nil:
		return "", err
	}
	led := "nobody"
	if o.Spec.HolderIdentity != nil && *o.Spec.HolderIdentity != "" {
		led = *o.Spec.HolderIdentity
	}
	annotations, _ := s.ours(now, 0)
	return "Lease " + s.options.Lease + " of " + led, s.sendLease(ctx, "patch", map[string]any{"metadata": map[string]any{"annotations": annotations}}, true)
}
