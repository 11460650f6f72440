// The document of the OpenAI listener against its routes.

package proxy

import (
	"testing"

	"kvasir/apidoc/apidoctest"
	"kvasir/openai"
)

// TestDocument: each route that is registered is in the document, by its methods, and nothing else is.
func TestDocument(t *testing.T) {
	apidoctest.Whole(t, startProxy(t, settingsFor(goodWorker(t).url)).routes())
	if len(members) != len(openai.Routes) {
		t.Errorf("%d routes are described, there are %d", len(members), len(openai.Routes))
	}
}
