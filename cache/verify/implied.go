// Implied: function words that add no meaning where they stand.

package verify

// isImplied reports whether t implies the unmatched function word i of s: the mood of a condition
// that both have (what would happen if it broke, what happens if it breaks), or a degree that
// "why" implies (why is it so loud).
func isImplied(s *side, i int, t *side) bool {
	switch string(s.word(i)) {
	case "would", "will":
		return s.says("if") && t.says("if")
	case "so":
		return s.form == why && t.form == why
	case "has", "have", "in":
		return s.form == howMany && t.form == howMany
	case "mean", "means", "stand for", "stands for", "short for":
		return i == len(s.words)-1 && s.form == what && t.form == what && !t.says("do") // what does it mean, what is it
	case "between", "and", "from", "to", "with":
		return s.compares && t.compares
	}
	if s.compares && t.compares && isDifference(s.word(i)) {
		return true
	}
	if string(s.word(i)) == "like" && asksState(t, s) {
		return true
	}
	if cooks(s, t) || cooks(t, s) {
		switch string(s.word(i)) {
		case "recipe", "recipes", "for", "make", "cook", "bake", "prepare", "making", "cooking", "做", "做法", "食谱", "菜谱":
			return true
		}
	}
	return explainsWork(s, t) && works(s, i)
}

// cooks reports whether s asks how a dish is made and t for its recipe.
func cooks(s, t *side) bool {
	return s.form == how && (s.says("make") || s.says("cook") || s.says("bake") || s.says("prepare") || s.says("做")) &&
		(t.form == noForm || t.form == what || t.form == how) && (t.says("recipe") || t.says("做法") || t.says("食谱") || t.says("菜谱"))
}

// explainsWork reports whether s asks how a thing works and t wants it explained.
func explainsWork(s, t *side) bool { return s.form == how && t.explains && works(s, len(s.words)-1) }

// works reports whether word i of s is that a thing works, or by what principle.
func works(s *side, i int) bool {
	switch string(s.word(i)) {
	case "work", "works", "function", "functions", "operate", "operates", "工作", "运作", "运行", "工作原理", "运作原理", "原理":
		return true
	}
	return false
}

// isSilent reports whether word i is grammar that a question may have or lack, depending on its
// word order.
func isSilent(s *side, i int) bool {
	w := &s.words[i]
	if w.class&asks != 0 || w.class&number != 0 && w.class&light != 0 { // a mile, one mile
		return true
	}
	if w.class&small == 0 || w.class&negator != 0 {
		return false
	}
	switch string(s.word(i)) {
	case "is", "are", "am", "was", "were", "do", "does", "did", "it", "that", "there", "got", "of", "是", "会", "有", "由", "个", "一个":
		return true
	}
	return false
}

// isImpliedBy reports whether t implies every unmatched word of s.
func isImpliedBy(s *side, t *side) bool {
	for i := range s.words {
		if s.words[i].match < 0 && !isSilent(s, i) && !isImplied(s, i, t) {
			return false
		}
	}
	return true
}

// isDifference reports whether a word says that things are compared: what is the difference between them, how do
// they differ, compare them.
func isDifference(word []byte) bool {
	switch string(word) {
	case "difference", "differences", "differ", "differs", "different", "differentfrom", "distinction", "distinctions", "vs", "versus",
		"compare", "comparing", "comparison", "区别", "差别", "差异", "不同", "不同之处", "比较", "对比", "有什么不同", "有什么区别":
		return true
	}
	return false
}
