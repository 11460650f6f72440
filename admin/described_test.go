// The document of the admin listener against its routes.

package admin

import (
	"testing"

	"kvasir/apidoc/apidoctest"
)

// TestDocument: each route that is registered is in the document, by its methods, and nothing else is.
func TestDocument(t *testing.T) { apidoctest.Whole(t, routes(options())) }
