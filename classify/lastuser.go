// The last user text: what category, language, complexity and embeddings judge.

package classify

// maxLast bounds the last user text in bytes. Of a longer one its beginning and
// its end are judged: a question stands before or after what it is about.
const (
	maxLast = 4 << 10
	maxTail = 1 << 10
)

// lastUser is the text of the last user message, its parts in order, folded, or
// where there are no messages the prompt; empty if the user says nothing. It is
// made once a request.
func (j *judging) lastUser() []byte {
	if j.last != nil {
		return j.last
	}
	start, end := j.lastMessage()
	switch end - start {
	case 0:
		j.last = []byte{}
	case 1:
		j.last = j.shorten(j.folded(start).bytes)
	default:
		j.joinLast(start, end)
	}
	return j.last
}

func (j *judging) lastMessage() (start, end int) { return lastMessage(j.r.Texts) }

// lastMessage is where the texts of the last user message, or of the prompt,
// stand in the request.
func lastMessage(texts []Text) (start, end int) {
	end = len(texts)
	for end > 0 && texts[end-1].Role != User {
		end--
	}
	start = end
	for start > 0 && texts[start-1].Role == User && texts[start-1].Message == texts[end-1].Message {
		start--
	}
	return start, end
}

// wordsOfLast counts the words of the last user message.
func (j *judging) wordsOfLast() int {
	if j.find(KindStructure) != nil {
		return 0
	}
	return j.shape.words
}

// joinLast joins texts, of which there may be very many, no further than to
// both ends of what is judged.
func (j *judging) joinLast(start, end int) {
	j.lastBuf = j.lastBuf[:0]
	for i := start; i < end; i++ {
		j.lastBuf = append(append(j.lastBuf, head(j.folded(i).bytes, maxLast)...), '\n')
		if len(j.lastBuf) > maxLast {
			j.lastBuf = append(head(j.lastBuf, maxLast-maxTail), '\n')
			j.lastBuf = append(j.lastBuf, tail(j.folded(end-1).bytes, maxTail)...)
			break
		}
	}
	j.last = j.lastBuf
}

// shorten keeps the beginning and the end of a long text.
func (j *judging) shorten(text []byte) []byte {
	if len(text) <= maxLast {
		return text
	}
	j.lastBuf = appendEnds(j.lastBuf[:0], text)
	return j.lastBuf
}

// appendEnds appends the beginning and the end of a text of more than maxLast bytes.
func appendEnds(dst, text []byte) []byte {
	dst = append(append(dst, head(text, maxLast-maxTail)...), '\n')
	return append(dst, tail(text, maxTail)...)
}

// head is the beginning of a text, at most n bytes and no half letter.
func head(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n]
}

// tail is the end of a text, at most n bytes and no half letter.
func tail(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	at := len(text) - n
	for at < len(text) && text[at]&0xc0 == 0x80 {
		at++
	}
	return text[at:]
}
