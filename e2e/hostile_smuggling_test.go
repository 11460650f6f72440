// Requests that two readers could take for different ones: refused, or sent on in the one form that Kvasir writes.

package e2e

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A smuggle is one request, byte for byte, or several. %BODY% is a question's JSON, %LEN% its length in decimal digits and
// %HEX% in hexadecimal.
type smuggle struct {
	raw      string
	statuses string // of the replies, in order, with blanks between; "closed": none, and the connection is closed
	passed   int    // requests that reach the worker
}

const (
	postLine = "POST /v1/chat/completions HTTP/1.1\r\n"
	hostLine = "Host: x\r\nContent-Type: application/json\r\n"
	lenLine  = "Content-Length: %LEN%\r\n"
	goodPost = postLine + hostLine + lenLine + "\r\n%BODY%"
	teLine   = "Transfer-Encoding: chunked\r\n"
	oneBody  = "%HEX%\r\n%BODY%\r\n0\r\n\r\n" // in one chunk
)

// with is a good request with these lines before its length; withLine has another request line; chunkedBy another coding.
func with(lines ...string) string {
	return postLine + hostLine + headerLines(lines) + lenLine + "\r\n%BODY%"
}

func withLine(line string) string { return line + "\r\n" + hostLine + lenLine + "\r\n%BODY%" }

func chunkedBy(body string, lines ...string) string {
	return postLine + hostLine + headerLines(lines) + "\r\n" + body
}

var smuggled = map[string]smuggle{
	"plain": {goodPost, "200", 1},

	// How long is the body?
	"length and chunks":               {with("Transfer-Encoding: chunked"), "400", 0},
	"chunks":                          {chunkedBy(oneBody, "Transfer-Encoding: chunked"), "200", 1},
	"CHUNKED":                         {chunkedBy(oneBody, "Transfer-Encoding: CHUNKED"), "200", 1},
	"gzip, chunked":                   {chunkedBy(oneBody, "Transfer-Encoding: gzip, chunked"), "400", 0},
	"identity":                        {chunkedBy("%BODY%", "Transfer-Encoding: identity"), "400", 0},
	"xchunked":                        {chunkedBy(oneBody, "Transfer-Encoding: xchunked"), "400", 0},
	"chunked twice":                   {chunkedBy(oneBody, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), "400", 0},
	"chunked, then identity":          {chunkedBy(oneBody, "Transfer-Encoding: chunked", "Transfer-Encoding: identity"), "400", 0},
	"chunks in HTTP/1.0":              {strings.Replace(chunkedBy(oneBody, "Transfer-Encoding: chunked"), "1.1", "1.0", 1), "400", 0},
	"a vertical tab before chunked":   {chunkedBy(oneBody, "Transfer-Encoding: \vchunked"), "400", 0},
	"a blank before the colon":        {chunkedBy(oneBody, "Transfer-Encoding : chunked"), "400", 0},
	"a folded transfer coding":        {chunkedBy(oneBody, "Transfer-Encoding:\r\n chunked"), "400", 0},
	"a folded header":                 {with("X-A: 1\r\n 2"), "400", 0},
	"bare LFs":                        {strings.ReplaceAll(goodPost, "\r\n", "\n"), "408", 0},
	"one bare LF":                     {with("X-A: 1\nX-B: 2"), "400", 0},
	"a bare CR":                       {with("X-A: 1\rX-B: 2"), "400", 0},
	"NUL in a value":                  {with("X-A: 1\x00"), "400", 0},
	"NUL in a name":                   {with("X-\x00A: 1"), "400", 0},
	"two equal lengths":               {with("Content-Length: %LEN%"), "400", 0},
	"two lengths":                     {with("Content-Length: 5"), "400", 0},
	"a list of lengths":               {chunkedBy("%BODY%", "Content-Length: %LEN%, %LEN%"), "400", 0},
	"a length with a sign":            {chunkedBy("%BODY%", "Content-Length: +%LEN%"), "400", 0},
	"a length in hexadecimal":         {chunkedBy("%BODY%", "Content-Length: 0x%HEX%"), "400", 0},
	"a negative length":               {chunkedBy("%BODY%", "Content-Length: -1"), "400", 0},
	"a length beyond all numbers":     {chunkedBy("%BODY%", "Content-Length: 99999999999999999999999"), "400", 0},
	"a length beyond ours":            {chunkedBy("%BODY%", "Content-Length: 5000000000000000000") + goodPost, "400", 0},
	"the longest length":              {chunkedBy("%BODY%", "Content-Length: 9223372036854775807") + goodPost, "400", 0},
	"identity, then another request":  {postLine + hostLine + "Transfer-Encoding: identity\r\n\r\n" + goodPost, "400", 0},
	"identity on a GET":               {"GET /livez HTTP/1.1\r\n" + hostLine + "Transfer-Encoding: identity\r\n\r\n" + goodPost, "400", 0},
	"a length with zeros before it":   {chunkedBy("%BODY%", "Content-Length: 000%LEN%"), "200", 1},
	"a length with an underscore":     {chunkedBy("%BODY%", "Content-Length: 1_0"), "400", 0},
	"no length":                       {chunkedBy("%BODY%"), "400 408", 0},
	"an extension of a chunk":         {chunkedBy("%HEX%;a=b\r\n%BODY%\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), "200", 1},
	"an extension and a bare LF":      {chunkedBy("%HEX%;a\n%BODY%\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), "400", 0},
	"chunks with bare LFs":            {chunkedBy("%HEX%\n%BODY%\n0\n\n", "Transfer-Encoding: chunked"), "400", 0},
	"a chunk's size with 0x":          {chunkedBy("0x%HEX%\r\n%BODY%\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), "400", 0},
	"a chunk's size that overflows":   {chunkedBy("1000000000000000%HEX%\r\n%BODY%\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), "400", 0},
	"a negative chunk":                {chunkedBy("-1\r\n%BODY%\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), "400", 0},
	"a chunk without its end":         {chunkedBy("%HEX%\r\n%BODY%XX0\r\n\r\n", "Transfer-Encoding: chunked"), "400", 0},
	"trailers":                        {chunkedBy("%HEX%\r\n%BODY%\r\n0\r\nX-T: 1\r\n\r\n", "Transfer-Encoding: chunked", "Trailer: X-T"), "200", 1},
	"a length as a trailer":           {chunkedBy("%HEX%\r\n%BODY%\r\n0\r\nContent-Length: 5\r\n\r\n", "Transfer-Encoding: chunked"), "200", 1},
	"a key and a rank as trailers":    {chunkedBy("%HEX%\r\n%BODY%\r\n0\r\nX-Data-Parallel-Rank: 1\r\nX-Injected: "+evil+"\r\n\r\n", "Transfer-Encoding: chunked"), "200", 1},
	"Connection names Content-Length": {with("Connection: Content-Length, X-Injected", "X-Injected: "+evil), "200", 1},

	// Whom is it for, and what?
	"two hosts":                {with("Host: y"), "400", 0},
	"no host":                  {postLine + lenLine + "\r\n%BODY%", "400", 0},
	"no host in HTTP/1.0":      {strings.Replace(postLine, "1.1", "1.0", 1) + "Content-Type: application/json\r\n" + lenLine + "\r\n%BODY%", "200", 1},
	"absolute form":            {withLine("POST http://x/v1/chat/completions?q=1 HTTP/1.1"), "200", 1},
	"absolute form with names": {withLine("POST http://a:b@x/v1/chat/completions HTTP/1.1"), "200", 1},
	"CONNECT":                  {"CONNECT evil:443 HTTP/1.1\r\n" + hostLine + "\r\n", "404", 0},
	"path //":                  {withLine("POST //v1/chat/completions HTTP/1.1"), "404", 0},
	"path /../":                {withLine("POST /x/../v1/chat/completions HTTP/1.1"), "404", 0},
	"path %2f":                 {withLine("POST /v1%2fchat/completions HTTP/1.1"), "404", 0},
	"path ;x":                  {withLine("POST /v1/chat/completions;x HTTP/1.1"), "404", 0},
	"path %00":                 {withLine("POST /v1/chat/completions%00 HTTP/1.1"), "404", 0},
	"a blank in the query":     {withLine("POST /v1/chat/completions?a b HTTP/1.1"), "400", 0},
	"a version in the query":   {withLine("POST /v1/chat/completions?a HTTP/1.1 HTTP/1.1"), "400", 0},
	"CR in the query":          {withLine("POST /v1/chat/completions?a\rX-Injected: 1 HTTP/1.1"), "400", 0},
	"a tab in the query":       {withLine("POST /v1/chat/completions?a\tb HTTP/1.1"), "400", 0},
	"NUL in the query":         {withLine("POST /v1/chat/completions?a\x00b HTTP/1.1"), "400", 0},
	"DEL in the query":         {withLine("POST /v1/chat/completions?a\x7f HTTP/1.1"), "400", 0},
	"ESC in the query":         {withLine("POST /v1/chat/completions?a\x1b[31m HTTP/1.1"), "400", 0},
	"%0d%0a in the query":      {withLine("POST /v1/chat/completions?a%0d%0aX-A:1 HTTP/1.1"), "200", 1},
	"a fragment":               {withLine("POST /v1/chat/completions?a#b?c HTTP/1.1"), "200", 1},
	"two question marks":       {withLine("POST /v1/chat/completions??a=1 HTTP/1.1"), "200", 1},
	"tabs in the request line": {withLine("POST\t/v1/chat/completions\tHTTP/1.1"), "400", 0},
	"two blanks in it":         {withLine("POST  /v1/chat/completions  HTTP/1.1"), "400", 0},
	"a blank at its end":       {withLine("POST /v1/chat/completions HTTP/1.1 "), "400", 0},
	"HTTP/1.2":                 {withLine("POST /v1/chat/completions HTTP/1.2"), "505", 0},
	"HTTP/0.9":                 {"GET /v1/models\r\n\r\n", "400", 0},
	"http/1.1":                 {withLine("POST /v1/chat/completions http/1.1"), "400", 0},
	"lines before it":          {"\r\n\r\n" + goodPost, "200", 1},
	"post":                     {withLine("post /v1/chat/completions HTTP/1.1"), "405", 0},
	"NUL in the method":        {withLine("PO\x00ST /v1/chat/completions HTTP/1.1"), "400", 0},
	"HTTP/2 by knowledge":      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", "400", 0},
	"HTTP/2 by upgrade":        {with("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"), "200", 1},
	"a web socket":             {with("Connection: Upgrade", "Upgrade: websocket"), "200", 1},
	"a method in a header":     {with("X-HTTP-Method-Override: DELETE"), "200", 1},

	// What is the next request?
	"three at once":               {goodPost + goodPost + goodPost, "200 200 200", 3},
	"one behind HTTP/1.0":         {strings.Replace(goodPost, "1.1", "1.0", 1) + goodPost, "200", 1},
	"garbage behind it":           {goodPost + "GARBAGE\r\n\r\n", "200 400", 1},
	"GET with a body, then POST":  {"GET /health HTTP/1.1\r\n" + hostLine + "Content-Length: 5\r\n\r\nhello" + goodPost, "200 200", 1},
	"HEAD with a body, then POST": {"HEAD /v1/models HTTP/1.1\r\n" + hostLine + "Content-Length: 5\r\n\r\nhello" + goodPost, "200 200", 1},
	"404 with a body, then POST":  {"POST /nope HTTP/1.1\r\n" + hostLine + "Content-Length: 5\r\n\r\nhello" + goodPost, "404 200", 1},
	"Expect":                      {with("Expect: 100-continue"), "100 200", 1},
	"another Expect":              {with("Expect: 200-ok"), "200", 1},

	// How much of it is there?
	"197 lines":         {with(manyLines(197)...), "200", 1},
	"300 lines":         {with(manyLines(300)...), "431", 0},
	"a line of 31 KB":   {with("X-A: " + strings.Repeat("a", 31000)), "200", 1},
	"a line of 33 KB":   {with("X-A: " + strings.Repeat("a", 33000)), "431", 0},
	"a line of 5 MB":    {with("X-A: " + strings.Repeat("a", 5e6)), "431", 0},
	"engines' headers":  {with(steering...), "200", 1},
	"Forwarded by hand": {with("X-Forwarded-For: 6.6.6.6"), "200", 1},
}

// steering are headers that tell engines of each other, in other spellings too: none reaches a worker.
var steering = []string{
	"x-prefiller-host-port: " + evil, "X-Dynamo-Foo: " + evil, "Api-Key: " + evil, "X-Api-Key: " + evil,
	"X-Data-Parallel-Host-Port: " + evil, "X-Encoder-Hosts-Ports: " + evil, "Proxy-Authorization: " + evil, "TE: trailers",
}

func manyLines(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("X-%d: 1", i))
	}
	return lines
}

// TestHostileSmuggledRequest sends each and looks at both sides: as many replies as requests, and to the worker nothing but
// requests in Kvasir's own form, each with its own body whole.
func TestHostileSmuggledRequest(t *testing.T) {
	t.Parallel()
	w := startRaw(t, rightReply, "m")
	config := behind(map[string]string{"raw": w.url})
	config = strings.Replace(config, "timeouts: {", "timeouts: {header: 2s, ", 1) // some of them are never whole
	k := serve(t, config, "m")
	number := 0
	for name, s := range smuggled {
		number++
		body := askModel("m", fmt.Sprintf("What is smuggled, %d?", number), false)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := strings.NewReplacer("%BODY%", body, "%LEN%", strconv.Itoa(len(body)), "%HEX%", strconv.FormatInt(int64(len(body)), 16)).Replace(s.raw)
			got := statusesOf(t, k.url, raw, s.statuses)
			if got != s.statuses {
				t.Errorf("replies %q, want %q", got, s.statuses)
			}
			var passed int
			for _, r := range w.requests() {
				if strings.Contains(r.body, fmt.Sprintf("What is smuggled, %s?", regexp.MustCompile(`smuggled, (\d+)`).FindStringSubmatch(body)[1])) {
					passed++
					wantCanonical(t, r, body)
				}
			}
			if passed != s.passed {
				t.Errorf("%d requests reached the worker, want %d", passed, s.passed)
			}
		})
	}
	t.Cleanup(func() {
		for _, r := range w.requests() {
			if !strings.Contains(r.body, "What is smuggled, ") {
				t.Errorf("the worker was sent what nobody asked: %q", r.head+r.body)
			}
		}
	})
}

// wantCanonical: the head is Kvasir's own, and the body the client's.
func wantCanonical(t *testing.T, r rawRequest, body string) {
	t.Helper()
	head := "\r\n" + strings.ToLower(r.head)
	if r.body != body || strings.Count(head, "\r\ncontent-length:") != 1 || r.header("Content-Length") != strconv.Itoa(len(body)) ||
		strings.Contains(head, "\r\ntransfer-encoding:") || strings.Contains(head, "\r\nupgrade:") || strings.Contains(head, "\r\nte:") ||
		strings.Count(head, "\r\nhost:") != 1 || !regexp.MustCompile(`^POST /v1/chat/completions(\?\S*)? HTTP/1\.1\r\n`).MatchString(r.head) ||
		strings.Contains(head, "x-injected:") || strings.Contains(r.head, evil) || strings.ContainsAny(strings.ReplaceAll(r.head, "\r\n", ""), "\r\n\x00") {
		t.Errorf("the worker was sent %q", tail(r.head+r.body, 3000))
	}
}

var statusLine = regexp.MustCompile(`HTTP/1\.[01] (\d\d\d) `)

// statusesOf writes bytes to Kvasir and returns the statuses of the replies, with blanks between: until as many are there as
// are wanted and nothing more comes at once, or the connection closes.
func statusesOf(t *testing.T, url, raw, want string) string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	go func() {
		_, _ = io.WriteString(c, raw) // what is refused early is not read to its end
	}()
	var all []byte
	buffer := make([]byte, 64<<10)
	statuses := func() string {
		var found []string
		for _, m := range statusLine.FindAllSubmatch(all, -1) {
			found = append(found, string(m[1]))
		}
		return strings.Join(found, " ")
	}
	for {
		patienceNow := patience
		if len(statuses()) >= len(want) {
			patienceNow = 100 * time.Millisecond // a second reply to one request would come at once
		}
		_ = c.SetReadDeadline(time.Now().Add(patienceNow))
		n, err := c.Read(buffer)
		all = append(all, buffer[:n]...)
		if err != nil {
			break
		}
	}
	if len(all) == 0 {
		return "closed"
	}
	return statuses()
}
