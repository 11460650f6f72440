// The tables of known names: whole, and folded as other readers fold.

package openai

import (
	"encoding/json"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// readers are the files that read members by their names.
var readers = []string{"parameters.go", "messages.go", "items.go", "tools.go", "routerfields.go"}

// kinds are compared with values of members and not with their names.
var kinds = strings.Fields(`assistant developer tool user system function text reasoning item_reference compaction mcp message
	audio_url video_url image_url input_image image_embeds input_audio input_video image input_text output_text
	refusal thinking reasoning_text summary_text tool_use server_tool_use mcp_tool_use tool_result mcp_tool_result
	search_result document content`)

// Every name that a reader compares keys with is in the table that case is looked
// up in: one that is missing there would be read by its exact name alone.
func TestMemberNamesAreWhole(t *testing.T) {
	found := 0
	for _, file := range readers {
		tree, err := goparser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			var literals []ast.Expr
			switch n := n.(type) {
			case *ast.CaseClause:
				literals = n.List
			case *ast.BinaryExpr:
				literals = []ast.Expr{n.Y}
			}
			for _, l := range literals {
				literal, ok := l.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					continue
				}
				name, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				found++
				_, known := memberNames[name]
				if !known && !slices.Contains(kinds, name) && !slices.ContainsFunc([]string{"_call", "_output", "mcp_"}, func(part string) bool { return strings.Contains(name, part) }) {
					if name != "" && len(name) > 1 {
						t.Errorf("%s compares with %q, which memberNames has not", file, name)
					}
				}
			}
			return true
		})
	}
	if found < 150 {
		t.Errorf("only %d names were found: the test looks in the wrong place", found)
	}
}

// A key folds to a name here wherever encoding/json takes it for that name.
func TestNamesFoldAsGoFolds(t *testing.T) {
	const name = "kisxm"
	set := namesIn(name)
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if !unicode.IsLetter(r) && r > unicode.MaxASCII || r == '"' || r == '\\' || r < ' ' {
			continue
		}
		for i := range name {
			key := name[:i] + string(r) + name[i+1:]
			var got struct {
				V int `json:"kisxm"`
			}
			if r > 0x3000 && i > 0 {
				continue // the same as at the first letter
			}
			if r < 0x3000 || unicode.SimpleFold(r) != r {
				if err := json.Unmarshal([]byte(`{"`+key+`":1}`), &got); err != nil {
					t.Fatalf("%q: %v", key, err)
				}
			}
			if got.V == 1 && key != name && set.otherCase([]byte(key)) != name {
				t.Errorf("%q is %q to encoding/json, and not here", key, name)
			}
		}
	}
	for key, want := range map[string]string{
		"KISXM": name, "\u212aIſXM": name, "kıſxm": name, "kİsxm": name,
		name: "", "kisx": "", "kisxm ": "", "ｋisxm": "", "": "", "\xffisxm": "", strings.Repeat("K", 1000): "",
		"BOOTSTRAP_X": "bootstrap_x", "Kv_transfer_params": "kv_transfer_params",
	} {
		if got := set.otherCase([]byte(key)); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}

func TestModelsByOtherNames(t *testing.T) {
	for _, name := range strings.Fields("lora lora_path lora_request LORA loras adapter adapter_id peft-adapter my.lora adapters lorapath loraId alora " +
		"models fallbacks fallback_models deployment_id user_config api_base apiBase base_url extra_body") {
		if !namesModel([]byte(name)) {
			t.Errorf("%s is none", name)
		}
	}
	for _, name := range strings.Fields("exploration adapted lorax flora model _ - modelx fallback supermodels") {
		if namesModel([]byte(name)) {
			t.Errorf("%s is one", name)
		}
	}
}
