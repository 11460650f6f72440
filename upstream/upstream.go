// Package upstream: what it is for, and how one request to a worker goes.

// Package upstream is a worker as a peer: the connections to it, one request and its
// reply on one of them, and the watch over what the worker is and whether it is well.
//
//	w, err := upstream.NewWorker(settings, timeouts)
//	go w.Watch(ctx, hooks, func() { close(answered) }) // asks it and listens to it until ctx ends
//
//	var c upstream.Call
//	defer func() { c.Finish(by) }()       // by can stop the call, and has the request
//	err = c.Open(by, w.Conns, timeouts)   // then c.Head is there
//	for err == nil {
//		pass(c.Payload())                 // what has come of the body
//		c.Pass(len(c.Payload()))
//		err = c.More()                    // io.EOF: the body has ended rightly
//	}
//
// It knows neither clients nor the exchange of a request and its answer.
package upstream
