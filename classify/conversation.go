// Conversation: counts of messages, turns, tools and images.
package classify

// KindConversation holds under names of the user's own.
const KindConversation Kind = "conversation"

// newConversation: all features must lie within their bounds.
func newConversation(_ *Classifier, o *SignalOptions) (test, error) {
	if err := checkFeatures(o.Features, "turns", "messages", "tools", "images", "results"); err != nil {
		return nil, err
	}
	features := o.Features
	return func(j *judging) (float64, bool, error) {
		for _, f := range features {
			if !f.within(float64(counted(j.r, f.Name))) {
				return 0, false, nil
			}
		}
		return 1, true, nil
	}, nil
}

func counted(r *Request, what string) int {
	switch what {
	case "turns":
		return r.Turns
	case "messages":
		return r.Messages
	case "tools":
		return r.Tools
	case "images":
		return r.Images
	case "results":
		return r.Results
	}
	panic("BUG: nobody counts " + what)
}
