// Reading: request bodies as the pipeline reads them, for those who only ask what is in them.
package proxy

import (
	"kvasir/classify"
)

// A Reading reads one request body after another, as the pipeline does before
// it judges. It is for one goroutine.
type Reading struct{ x exchange }

// Chat reads a body of /v1/chat/completions, which may leave the model out:
// then it is ours to choose. What comes back is valid until the next call, and
// as long as body is not changed. The error is the one that a client would get.
func (r *Reading) Chat(body []byte) (*classify.Request, error) {
	q, err := r.Read("/tokenize", body)
	if err == nil && r.x.req.given&needsMessages == 0 {
		return nil, invalid("messages", "you must provide a messages parameter")
	}
	return q, err
}

// Read is Chat for the route with this path; its model may be left out only
// where the route's may.
func (r *Reading) Read(path string, body []byte) (*classify.Request, error) {
	x := &r.x
	for _, rt := range routes {
		if rt.path != path || rt.kind == kindForm {
			continue
		}
		if err := x.req.parse(rt, body, nil); err != nil {
			return nil, err
		}
		x.body = body
		x.facts.asked = string(x.req.model)
		return x.question(), nil
	}
	return nil, invalid("", "There is no route %s with a JSON body", path)
}
