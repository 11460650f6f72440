// Long texts that differ in one place.

package verify

import (
	"strings"
	"testing"
)

const report = "I am preparing a report for my manager about the warehouse in Hamburg and the transport of spare parts during the last quarter. " +
	"We had several delays because the supplier changed the packaging, and the drivers complained about the new schedule that was introduced in spring. " +
	"In the second half of the report I want to explain who is responsible for which step. Anna sends the parts to Boris, and Boris pays 250 euros for " +
	"each pallet that arrives on time. The insurance covers damage during transport but not theft from the yard. Please write a short summary of this " +
	"situation in three sentences."

const minutes = "请根据下面的会议记录写一份总结：市场部提出了新的推广方案，技术部认为需要更多时间。财务部希望下个月再讨论。小王把报告交给小李，预算是三十万元。" +
	"市场部还说明了去年的销售情况，技术部介绍了系统升级的进度，大家同意周五之前交出第一版。"

// One difference deep in a text changes the answer, however long the equal rest is.
func TestLongTextsDifferInOnePlace(t *testing.T) {
	v := open(t)
	listing := "Fix this:\n" + strings.Repeat("x = x + 1\n", 60)
	for _, row := range []struct{ text, from, to, why string }{
		{report, "Anna sends the parts to Boris, and Boris pays", "Boris sends the parts to Anna, and Anna pays", "order"},
		{report, "250", "350", "number"},
		{report, "covers damage", "does not cover damage", "negation"},
		{report, "Hamburg", "Bremen", "name"},
		{report, "three sentences", "five sentences", "number"},
		{report, "spring", "autumn", "date"},
		{report, "supplier changed", "customer changed", "word"},
		{report, "three sentences.", "three sentences. Make it rhyme.", "word"},
		{"Swap disk 1 2 " + strings.Repeat("pad ", 200), "1 2", "2 1", "order"},
		{"Copy the files of server 3 to server 5 " + strings.Repeat("and check them ", 60), "3 to server 5", "5 to server 3", "order"},
		{listing + "print(a - b)", "a - b", "b - a", "order"},
		{minutes, "小王把报告交给小李", "小李把报告交给小王", "order"},
		{minutes, "三十万", "四十万", "number"},
	} {
		other := strings.Replace(row.text, row.from, row.to, 1)
		if score, why := v.Compare([]byte(row.text), []byte(other), 0.999); score >= 0.9 || why != row.why {
			t.Errorf("%q against %q: %.3f %q, want %q", row.from, row.to, score, why, row.why)
		}
	}
	polite := strings.Replace(report, "Please write", "could you write", 1)
	for _, same := range []string{polite, strings.ToLower(report), strings.ReplaceAll(report, ". ", ".\n\n")} {
		if score, why := v.Compare([]byte(report), []byte(same), 0.99); score < 0.9 {
			t.Errorf("the same text is %.3f %q:\n%s", score, why, same)
		}
	}
}

// A sameness is two questions, and whether one answer serves both.
type sameness struct {
	a, b string
	same bool
}

func holdSame(t *testing.T, rows []sameness, similarity float64) {
	t.Helper()
	v := open(t)
	for _, row := range rows {
		if score, why := v.Compare([]byte(row.a), []byte(row.b), similarity); (score >= threshold) != row.same {
			t.Errorf("%q, %q: %.3f %q", row.a, row.b, score, why)
		}
	}
}

// The numbers of a sum may be in any order, those of a difference may not.
func TestNumbersInOrder(t *testing.T) {
	holdSame(t, []sameness{
		{"What is 3 + 5?", "What is 5 + 3?", true},
		{"What is 3 - 5?", "What is 5 - 3?", false},
		{"Is 7 greater than 9?", "Is 9 greater than 7?", false},
		{"What happened on May 5, 1945?", "What happened on 5 May 1945", true},
		{"Swap disks 1 2", "Swap disks 2 1", false},
	}, 0.97)
}

// The negation of a question may stand before or after its subject.
func TestNegationBeforeTheSubject(t *testing.T) {
	holdSame(t, []sameness{
		{"Why is my sourdough bread not rising?", "Why isn't my sourdough bread rising?", true},
		{"Why will my laptop not turn on?", "Why won't my laptop turn on?", true},
		{"Why does my dog not eat?", "Why doesn't my dog eat?", true},
		{"Why does my dog not eat?", "Why does my dog eat?", false},
		{"Why doesn't my dog eat but my cat does?", "Why does my dog eat but my cat doesn't?", false},
		{"Why isn't my bread rising?", "Why isn't my dough rising?", false},
	}, 0.98)
}
