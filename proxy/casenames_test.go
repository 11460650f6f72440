// Names of members that steps of the proxy ask for: each must be refused in another case.

package proxy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kvasir/openai"
)

// TestMembersAskedForInAnotherCase: the cache passed over "Previous_Response_Id", which a server written in Go takes
// for previous_response_id. Found are the cases of switches over a member's key, in the source.
func TestMembersAskedForInAnotherCase(t *testing.T) {
	asked := map[string]bool{}
	for _, folder := range []string{".", "../openai"} {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(source, func(n ast.Node) bool {
				if s, ok := n.(*ast.SwitchStmt); ok && overKey(s.Tag) {
					for _, clause := range s.Body.List {
						for _, e := range clause.(*ast.CaseClause).List {
							if name, err := strconv.Unquote(e.(*ast.BasicLit).Value); err == nil {
								asked[name] = true
							}
						}
					}
				}
				return true
			})
		}
	}
	delete(asked, "delta") // these are of answers
	delete(asked, "partial_json")
	if len(asked) < 60 || !asked["previous_response_id"] || !asked["messages"] {
		t.Fatalf("%d names are asked for: the switches are written otherwise now", len(asked))
	}
	var r openai.Request
	for name := range asked {
		body := `{"model":"m","messages":[{"role":"user","content":"hi"}],"` + strings.ToUpper(name[:1]) + name[1:] + `":null}`
		err := r.Parse(openai.Routes[0], []byte(body), nil)
		if err == nil || !strings.Contains(err.Message, "only by case") {
			t.Errorf("%s in another case: %v", name, err)
		}
	}
}

// overKey says whether a switch is over the key of a member: string(key), string(m.key), string(p.Key.Of(r.Body)).
func overKey(tag ast.Expr) bool {
	call, ok := tag.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return false
	}
	if f, ok := call.Fun.(*ast.Ident); !ok || f.Name != "string" {
		return false
	}
	switch of := call.Args[0].(type) {
	case *ast.Ident:
		return of.Name == "key"
	case *ast.SelectorExpr:
		return of.Sel.Name == "key"
	case *ast.CallExpr:
		f, ok := of.Fun.(*ast.SelectorExpr)
		if !ok || f.Sel.Name != "Of" {
			return false
		}
		key, ok := f.X.(*ast.SelectorExpr)
		return ok && key.Sel.Name == "Key"
	}
	return false
}
