// Nothing answers across scopes, however near the questions are.

package proxy

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"kvasir/cache"
	"kvasir/cache/embedded"
)

// believing takes every question for every other: only the scope is left to
// keep them apart.
type believing struct{}

func (believing) Compare(_, _ []byte, _ float64) (float64, string) { return 1, "" }

// facets are what two requests may differ in, with values that are as near as
// can be. The first value of each says nothing.
var facets = []struct {
	name   string
	values []string
}{
	{"tenant", []string{"a", "b", "c"}},
	{"path", []string{"/v1/chat/completions", "/v1/messages", "/v1/chat/completions?a=b"}},
	{"header", []string{"", "Cookie: a", "X-Team: red", "X-Team: blue", "anthropic-beta: x"}},
	{`"model":`, []string{`"m"`, `"q"`}},
	{`system`, []string{
		``, `{"role":"system","content":"You are a helpful assistant."},`, `{"role":"system","content":"You are a helpful assistant"},`,
		`{"role":"system","content":"You are a Helpful assistant."},`, `{"role":"system","content":"You are a helpful assistant. "},`,
		`{"role":"developer","content":"You are a helpful assistant."},`, `{"role":"system","content":[{"type":"text","text":"You are a helpful assistant."}]},`,
	}},
	{`history`, []string{
		``, `{"role":"user","content":"I live in Oslo."},{"role":"assistant","content":"Noted."},`, `{"role":"user","content":"I live in Rome."},{"role":"assistant","content":"Noted."},`,
		`{"role":"user","content":"I live in Oslo."},`, `{"role":"assistant","content":"I live in Oslo."},`, `{"role":"user","content":"I live in Oslo.","name":"Bo"},`,
	}},
	{`part`, []string{``, `{"type":"text","text":"As briefly as you can:"},`, `{"type":"text","text":"As briefly as you can: "},`, `{"type":"image_url","image_url":{"url":"data:,a"}},`, `{"type":"image_url","image_url":{"url":"data:,b"}},`}},
	{`"tools":`, []string{``, `[{"type":"function","function":{"name":"f"}}]`, `[{"type":"function","function":{"name":"g"}}]`, `[]`}},
	{`"response_format":`, []string{``, `{"type":"json_object"}`, `{"type":"text"}`}},
	{`"max_tokens":`, []string{``, `10`, `100`}},
	{`"temperature":`, []string{``, `0`, `0.0`, `0.7`}},
	{`"top_p":`, []string{``, `0.1`, `0.10`}},
	{`"seed":`, []string{``, `1`, `-1`}},
	{`"stop":`, []string{``, `"a"`, `["a"]`, `["a","b"]`}},
	{`"frequency_penalty":`, []string{``, `1`, `-1`}},
	{`"logit_bias":`, []string{``, `{"1":1}`, `{"1":-1}`, `{"2":1}`}},
	{`"cache_salt":`, []string{``, `"x"`, `"y"`}},
	{`"reasoning_effort":`, []string{``, `"low"`, `"high"`}},
	{`"chat_template_kwargs":`, []string{``, `{"enable_thinking":true}`, `{"enable_thinking":false}`}},
	{`"a_new_parameter":`, []string{``, `1`, `"1"`, `[1]`, `{"a":1}`, `true`, `[1,1]`, `[11]`}},
}

// facing writes the request that has these values; varied, in another form that
// no answer depends on.
func facing(choice []int, question string, varied bool) (path, body string, headers []string) {
	of := func(name string) string {
		for i, f := range facets {
			if f.name == name {
				return f.values[choice[i]]
			}
		}
		panic(name)
	}
	headers = []string{"Authorization: Bearer " + of("tenant")}
	if h := of("header"); h != "" {
		headers = append(headers, h)
	}
	members := []string{`"messages":[` + of("system") + of("history") + `{"role":"user","content":[` + of("part") + `{"type":"text","text":"` + question + `"}]}]`}
	for i, f := range facets {
		if v := f.values[choice[i]]; f.name[0] == '"' && v != "" {
			members = append(members, f.name+v)
		}
	}
	join := ","
	if varied {
		members = append([]string{`"stream":true`, `"user":"somebody"`}, members...)
		rand.Shuffle(len(members), func(i, k int) { members[i], members[k] = members[k], members[i] })
		join = " ,\n\t"
		headers = append(headers, "User-Agent: another", "X-Request-Id: 1")
	}
	return of("path"), "{" + strings.Join(members, join) + "}", headers
}

// 10,000 pairs of requests that differ in one thing and ask the same: none
// answers the other, even where every question is taken for every other. Each
// answers itself in another form.
func TestNothingAnswersAcrossScopes(t *testing.T) {
	store, err := embedded.Open(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	var keys []Key
	for _, name := range facets[0].values {
		keys = append(keys, Key{Name: name, SHA256: sha256.Sum256([]byte(name))})
	}
	p := scoped(t, func(s *Settings) { s.Keys = keys })
	c := cache.New(cache.Options{Store: store, Verifier: believing{}, TTL: time.Hour})
	random := rand.New(rand.NewPCG(1, 2))
	const pairs = 10_000
	for n := range pairs {
		choice := make([]int, len(facets))
		for i := range choice {
			if random.IntN(3) == 0 {
				choice[i] = random.IntN(len(facets[i].values))
			}
		}
		question := fmt.Sprint("How old is number ", n%7, "?")
		path, body, headers := facing(choice, question, false)
		_, q := posed(t, p, path, body, headers...)
		if _, err := c.Put(q, []byte("answer")); err != nil {
			t.Fatal(err)
		}
		if n%10 == 0 {
			path, body, headers = facing(choice, strings.Replace(question, "How old", "Of what age", 1), true)
			if _, q := posed(t, p, path, body, headers...); !c.Lookup(q).Hit {
				t.Fatalf("%s %s %q does not answer itself", path, body, headers)
			}
		}
		i := random.IntN(len(facets))
		other := append([]int(nil), choice...)
		for other[i] == choice[i] {
			other[i] = random.IntN(len(facets[i].values))
		}
		path, body, headers = facing(other, question, n%2 == 0)
		if _, q := posed(t, p, path, body, headers...); c.Lookup(q).Hit {
			t.Fatalf("%s is %q and answers %s %s %q", facets[i].name, facets[i].values[choice[i]], path, body, headers)
		}
		if _, err := c.Delete(cache.Filter{}); err != nil {
			t.Fatal(err)
		}
	}
}
