// Conversation: counts of messages, turns, tools and media (`images`: audio and video are counted, too).

package classify

// KindConversation holds under names of the user's own.
const KindConversation Kind = "conversation"

var conversationCounts = []string{"turns", "messages", "tools", "images", "results"}

func measureConversation(j *judging, what string) (float64, error) {
	switch what {
	case "turns":
		return float64(j.r.Turns), nil
	case "messages":
		return float64(j.r.Messages), nil
	case "tools":
		return float64(j.r.Tools), nil
	case "images":
		return float64(j.r.Media), nil
	case "results":
		return float64(j.r.Results), nil
	}
	panic("BUG: nobody counts " + what)
}
