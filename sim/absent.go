// Routes of OpenAI's API that need another kind of model than the simulated one: what is there
// instead is said.

package sim

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// absentRoutes are routes that gateways pass on and that no simulated engine answers.
var absentRoutes = []string{
	"/v1/audio/transcriptions", "/v1/audio/translations", "/v1/audio/speech",
	"/v1/images/generations", "/v1/images/edits", "/v1/images/variations",
}

// serveAbsent refuses a route and names those that there are.
func serveAbsent(s *Server, w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody)) // or net/http may not see that a client leaves
	var served []string
	for path, route := range s.dialect.routes {
		if route.method == http.MethodPost {
			served = append(served, path)
		}
	}
	slices.Sort(served)
	s.refuse(w, &failure{http.StatusNotFound, kindOf(http.StatusNotFound), "the simulated worker " + strconv.Quote(s.options.Name) +
		" has no model for " + r.URL.Path + "; it serves " + strings.Join(served, ", "), ""})
}
