// Jailbreak: attacks in what is said to the model, and instructions in what it
// is only meant to read.

package classify

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"kvasir/classify/encoder"
)

// KindJailbreak has the values of jailbreakTypes.
const KindJailbreak Kind = "jailbreak"

// The types of attack.
const (
	typeJailbreak = "jailbreak"          // rules are to be dropped, a role played that has none, secrets told
	typeInjection = "prompt_injection"   // instructions hidden in a task
	typeIndirect  = "indirect_injection" // instructions in a tool's result or a document
)

func jailbreakTypes() []string { return []string{typeJailbreak, typeInjection, typeIndirect} }

// priors are the odds of an attack in what each role says, against those in a
// user's text, on which the scores are calibrated. System text and the
// descriptions of tools are the operator's as a rule and full of rules, roles
// and prohibitions, which look like attacks; but a client may write them too,
// so a clear attack counts there as well. Earlier answers are the client's word
// for what the model said, and quote what they refuse. Of 298 written system
// prompts 3.0 % are flagged with the odds of a user, none with these, which
// still see 55 % of the attacks on dev in a system prompt (80 % from a user);
// of 280 answers 1.8 % and none, with 60 % of the attacks.
var priors = [...]float64{
	User: 1, Other: 1, Tool: 1, Document: 1,
	Assistant: 0.3, System: 0.2, ToolDefinition: 0.2,
}

// maxTurns and maxTurnBytes bound the user turns that are judged together, the
// last ones, so that an attack split over them is seen.
const (
	maxTurns     = 8
	maxTurnBytes = 2 << 10
	maxTurn      = 512 // bytes of one turn
)

// searchAttacks judges each message, its parts together, and, where that finds
// nothing, the last user turns together. The verdict names the worst.
func searchAttacks(j *judging) error {
	texts := j.r.Texts
	for start := 0; start < len(texts); {
		end := start + 1
		for end < len(texts) && together(&texts[start], &texts[end]) {
			end++
		}
		if start > 0 && j.overdue() {
			return ErrTimeout
		}
		if err := attackIn(j, start, end); err != nil {
			return err
		}
		start = end
	}
	b := &j.v.Jailbreak
	if b.Score < j.c.options.Jailbreak.Threshold {
		if err := attackOverTurns(j); err != nil {
			return err
		}
	}
	b.Judged = true
	b.Flagged = b.Score >= j.c.options.Jailbreak.Threshold
	if !b.Flagged {
		b.Type = ""
	}
	return nil
}

// together says that two texts are read as one: parts of one message, and the
// many small strings that describe tools.
func together(a, b *Text) bool {
	if a.Role != b.Role {
		return false
	}
	return a.Message == b.Message && a.Message >= 0 || a.Role == ToolDefinition
}

// joinTexts puts the parts that are read as one together, folded.
func joinTexts(j *judging, start, end int) {
	j.joined = j.joined[:0]
	for i := start; i < end; i++ {
		j.joined = append(append(j.joined, j.folded(i).bytes...), '\n')
	}
}

// attackOverTurns judges the last turns of the user as one text. A long turn is
// skipped and the search goes on behind it: if it ended there, a long turn would be
// a way around it.
func attackOverTurns(j *judging) error {
	texts := j.r.Texts
	first, turns, size := len(texts), 0, 0
	message, last := int32(-1), int32(-1)
	for i := len(texts) - 1; i >= 0 && turns <= maxTurns; i-- {
		t := &texts[i]
		if t.Role != User || t.Message < 0 || len(j.folded(i).bytes) > maxTurn {
			continue
		}
		if size += len(j.folded(i).bytes) + 1; size > maxTurnBytes {
			break
		}
		if t.Message != message {
			message, last, turns = t.Message, max(last, t.Message), turns+1
		}
		if turns <= maxTurns {
			first = i
		}
	}
	if turns < 2 {
		return nil
	}
	j.joined = j.joined[:0]
	for i := first; i < len(texts); i++ {
		if t := &texts[i]; t.Role == User && t.Message >= 0 && len(j.folded(i).bytes) <= maxTurn {
			j.joined = append(append(j.joined, j.folded(i).bytes...), '\n')
		}
	}
	return attackInJoined(j, User, last)
}

// Questions that are asked of one text in more than one way.
const (
	asRead   = 1 // as what is only to be read
	asFolded = 2 // it is folded already
	asRule   = 4 // as what the operator says
)

// attackIn judges the texts [start, end) as one. A single text whose result is known is not even folded.
func attackIn(j *judging, start, end int) error {
	t := &j.r.Texts[start]
	if end > start+1 {
		joinTexts(j, start, end)
		return attackInJoined(j, t.Role, t.Message)
	}
	return attackOnce(j, j.c.shared.key(t.Bytes), start, t.Role, t.Message)
}

// attackInJoined judges the joined texts. They may lie in the same memory, with the same length, as the
// texts before them, so the reader is told to forget those.
func attackInJoined(j *judging, role Role, message int32) error {
	j.reader.forget()
	return attackOnce(j, j.c.shared.key(j.joined).with(asFolded), -1, role, message)
}

// attackOnce judges text i, or with -1 the joined ones, unless its result is known, and keeps the worst.
func attackOnce(j *judging, key textKey, i int, role Role, message int32) error {
	as := readingOf(role)
	switch {
	case as == encoder.AsDocument:
		key = key.with(asRead)
	case as == encoder.AsSystem && j.c.second:
		key = key.with(asRule)
	}
	s, ok := j.c.shared.attacks.get(key)
	if !ok {
		text := j.joined
		if i >= 0 {
			text = j.folded(i).bytes
		}
		var err error
		if s, err = attackOf(j, text, as); err != nil {
			return err
		}
		j.c.shared.attacks.put(key, s)
	}
	score, kind := worst(s, role)
	if score > j.v.Jailbreak.Score {
		j.v.Jailbreak.Score, j.v.Jailbreak.Type, j.v.Jailbreak.Message = score, kind, message
	}
	return nil
}

// attackOf reads a text of any length. Of a long one every piece is judged by
// its words, and the pieces that they speak against most, with the first and
// the last, by the encoder too: it would take 100 ms for 100 KB.
func attackOf(j *judging, text []byte, as encoder.Reading) (s attackScores, err error) {
	read := as == encoder.AsDocument
	if text = withoutNoise(j, text); !speaks(text) {
		return s, nil
	}
	if len(text) <= j.reader.whole() {
		if s, err = j.reader.attack(text, read); err != nil {
			return s, err
		}
		return j.surer(text, as, s)
	}
	var picked suspects
	for p := (pieces{text: text, size: attackPiece}); p.next(); {
		if j.overdue() {
			return s, ErrTimeout
		}
		attack, indirect := j.reader.suspicion(p.piece)
		picked.add(p, attack, indirect)
	}
	var first []byte // the most suspicious
	for _, p := range picked.pieces() {
		if j.overdue() {
			return s, ErrTimeout
		}
		one, err := j.reader.attack(p, read)
		if err != nil {
			return s, err
		}
		before := cheapOf(s, as)
		if one.attack > s.attack {
			s.attack, s.injection = one.attack, one.injection
		}
		if s.indirect = max(s.indirect, one.indirect); first == nil || cheapOf(s, as) > before {
			first = p
		}
	}
	return j.surer(first, as, s)
}

// fewLetters is how many letters are too few to give an order, and too few for the
// weights to judge: numbers, single letters, marks.
const fewLetters = 6

// speaks says whether a text has that many letters; one of a script without
// small letters counts double.
func speaks(text []byte) bool {
	letters := 0
	for len(text) > 0 && letters < fewLetters {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		switch {
		case unicode.IsUpper(r) || unicode.IsLower(r):
			letters++
		case unicode.IsLetter(r):
			letters += 2
		}
	}
	return letters >= fewLetters
}

// worst is the score that counts for a role, its prior applied, and the type.
func worst(s attackScores, role Role) (score float64, kind string) {
	switch {
	case role == Tool || role == Document:
		// A client may put into a document what it would not say itself.
		score, kind = max(float64(s.indirect), odds(float64(s.attack), quoted)), typeIndirect
	case s.injection > 0.5:
		score, kind = float64(s.attack), typeInjection
	default:
		score, kind = float64(s.attack), typeJailbreak
	}
	w := 1.0
	if int(role) < len(priors) {
		w = priors[role]
	}
	return odds(score, w), kind
}

// quoted are the odds of a direct attack in a document or a tool's result: such
// texts quote people who give each other orders.
const quoted = 0.3

// odds is the probability whose odds are w times those of p.
func odds(p, w float64) float64 { return p * w / (p*w + 1 - p) }

func isJailbreak(j *judging, value string) (float64, bool) {
	b := &j.v.Jailbreak
	return b.Score, b.Flagged && b.Type == value
}

func reportJailbreak(v *Verdict) string {
	o := &v.c.options.Jailbreak
	text := fmt.Sprintf("%.3f, acts from %g (%s)", v.Jailbreak.Score, o.Threshold, o.Action)
	if v.Hidden > 0 {
		text += fmt.Sprintf("; %d characters that no reader sees", v.Hidden)
	}
	if v.Jailbreak.Flagged {
		text += fmt.Sprintf(": %s in message %d", v.Jailbreak.Type, v.Jailbreak.Message)
	}
	return text
}

func foundJailbreak(j *judging) string {
	b := &j.v.Jailbreak
	if b.Type == "" {
		return "none, " + scored(b.Score)
	}
	return b.Type + " " + scored(b.Score)
}
