// Trouble: what an error of the API server means, and what to do about it.

package scale

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kvasir/discovery/kubeapi"
)

// A question is what the API server is asked: the object in words, and its resource as a Role names it.
type question struct {
	group                schema.GroupVersion
	verb, resource, what string
}

// mostToldBytes bounds what is repeated of an error, in bytes: what a webhook says may be a page.
const mostToldBytes = 1000

// A long is an error of which only the beginning is said.
type long struct{ error }

func (l long) Error() string {
	return strings.ToValidUTF8(l.error.Error()[:mostToldBytes], "") + "..."
}

func (l long) Unwrap() error { return l.error }

// trouble says it in one line that is the same at each try.
func trouble(ctx context.Context, q *question, c *kubeapi.Client, err error) error {
	what := fmt.Sprintf("cannot %s %s in namespace %s", q.verb, q.what, c.Namespace)
	if len(err.Error()) > mostToldBytes {
		err = long{err}
	}
	var outer *url.Error
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return err // for who asked
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: the API server forbids it; a Role there needs {apiGroups: [%q], resources: [%s], verbs: [%s]}, and a RoleBinding to us. It says: %w", what, q.group.Group, q.resource, q.verb, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: the API server at %s does not know us: the token or certificate is not, or no longer, valid there", what, c.Host())
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: there is none: %w", what, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s: no answer in time, which is %v, or as long as we still lead", what, callTimeout)
	case errors.As(err, &outer):
		return fmt.Errorf("cannot reach the API server at %s: %w", c.Host(), kubeapi.Lasting(outer.Err))
	}
	return fmt.Errorf("%s: %w", what, err)
}
