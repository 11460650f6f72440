// Tests of schemas and documents.

package apidoc

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

type inner struct {
	Name  string `json:"name"`
	State int    `json:"state"`
}

type shape struct {
	inner
	State   string         `json:"state"` // in the place of inner's
	Maybe   *float64       `json:"maybe,omitempty"`
	Never   *float64       `json:"never"`
	List    []inner        `json:"list"`
	Map     map[string]int `json:"map"`
	At      time.Time      `json:"at"`
	Hidden  int            `json:"-"`
	Self    *shape         `json:"self,omitempty"`
	private int
	Raw     json.RawMessage `json:"raw"`
	Plain   bool
}

func TestOf(t *testing.T) {
	_ = shape{}.private
	s := Of[shape]()
	if got, want := strings.Join(s["required"].([]string), " "), "name state never list map at raw Plain"; got != want {
		t.Errorf("required is %q, want %q", got, want)
	}
	properties := s["properties"].(Schema)
	for name, want := range map[string]string{
		"state": `{"type":"string"}`, "maybe": `{"type":["number","null"]}`, "at": `{"format":"date-time","type":"string"}`,
		"map": `{"additionalProperties":{"type":"integer"},"type":["object","null"]}`, "raw": `{}`, "Plain": `{"type":"boolean"}`,
	} {
		if got, _ := json.Marshal(properties[name]); string(got) != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if properties["Hidden"] != nil || properties["private"] != nil {
		t.Error("what is not written is described")
	}
	if _, err := json.Marshal(s); err != nil { // a type that holds itself ends somewhere
		t.Error(err)
	}
}

func TestPublish(t *testing.T) {
	r := New()
	r.AddGet(Operation{Path: "/a/{id}/{rest:*}", Does: "A thing", Group: "g", Answers: Text("x"), AlsoStatus: map[int]Schema{503: Text("y")}},
		func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("a") })
	r.Publish(Info{Title: "T", Keys: true})
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI("/openapi.json")
	r.Handler(&ctx)
	var d map[string]any
	if err := json.Unmarshal(ctx.Response.Body(), &d); err != nil {
		t.Fatal(err)
	}
	paths := d["paths"].(map[string]any)
	op := paths["/a/{id}/{rest}"].(map[string]any)["get"].(map[string]any)
	if len(paths) != 2 || len(op["parameters"].([]any)) != 2 || op["responses"].(map[string]any)["503"] == nil || op["operationId"] != "get_a_id_rest" {
		t.Errorf("%s", ctx.Response.Body())
	}
	if ctx.Request.SetRequestURI("/a/1/2/3"); true {
		r.Handler(&ctx)
	}
	if string(ctx.Response.Body()) != "a" {
		t.Errorf("%s", ctx.Response.Body())
	}
}
