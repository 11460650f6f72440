// What there is to say of the workers' side of the proxy.

// Package upstream is a worker as a peer: the connections to it, one request and
// its reply on one of them, and how the reply is framed.
//
//	pool := upstream.NewPool("10.0.0.5:8000", nil, timeouts)
//	var c upstream.Call
//	defer func() { c.Finish(by) }()                // by holds the connection, and has the request
//	err := c.Open(by, pool, timeouts)              // c.Head is there
//	for err == nil {
//		pass(c.Payload())                          // what has come
//		c.Pass(len(c.Payload()))
//		err = c.More()                             // io.EOF: the body has ended rightly
//	}
package upstream
