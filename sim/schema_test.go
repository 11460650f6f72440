// JSON for schemas: what is made fits, and what cannot be made is said.

package sim

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMakeJSON(t *testing.T) {
	for schema, want := range map[string]string{
		`{}`:                `"simulated"`,
		`{"type":"object"}`: `{}`,
		`{"type":"object","properties":{"city":{"enum":["Oslo", "Rome"]},"days":{"type":["integer","null"],"minimum":2}},"required":["city","days","city"]}`: `{"city": "Oslo", "days": 2}`,
		`true`: `"simulated"`,
		`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`: `{"b": "simulated", "a": 1}`,
		`{"type":"object","properties":{"o":{"type":"boolean"}}}`:                                                                         `{"o": false}`,
		`{"type":["null","string"]}`:                                                                                       `null`,
		`{"enum":["red","green"]}`:                                                                                         `"red"`,
		`{"type":"string","enum":[1,"green"]}`:                                                                             `"green"`,
		`{"const":{"a":[1,null]}}`:                                                                                         `{"a": [1, null]}`,
		`{"type":"array","items":{"type":"number"}}`:                                                                       `[1]`,
		`{"type":"array","items":{"type":"string"},"minItems":3,"uniqueItems":true}`:                                       `["simulated", "simulated 2", "simulated 3"]`,
		`{"type":"array","items":{"enum":[1,2,3]},"minItems":3,"uniqueItems":true}`:                                        `[1, 2, 3]`,
		`{"type":"array","maxItems":0}`:                                                                                    `[]`,
		`{"type":"array","prefixItems":[{"type":"null"},{"const":2}],"minItems":2,"items":false}`:                          `[null, 2]`,
		`{"type":"array","items":[{"type":"boolean"}],"additionalItems":{"const":7},"minItems":2}`:                         `[false, 7]`,
		`{"type":"integer","minimum":5}`:                                                                                   `5`,
		`{"type":"integer","exclusiveMinimum":5}`:                                                                          `6`,
		`{"type":"integer","maximum":-3}`:                                                                                  `-3`,
		`{"type":"integer","exclusiveMaximum":0,"multipleOf":4}`:                                                           `-4`,
		`{"type":"integer","minimum":5,"exclusiveMinimum":true}`:                                                           `6`,
		`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}`:                                                      `0.5`,
		`{"type":"number","minimum":2.5,"multipleOf":1.5}`:                                                                 `3`,
		`{"type":"string","minLength":12}`:                                                                                 `"simulated..."`,
		`{"type":"string","maxLength":3}`:                                                                                  `"ted"`,
		`{"type":"string","format":"date"}`:                                                                                `"2026-01-02"`,
		`{"type":"string","format":"email","pattern":"^(?!\\.)[a-z]+@"}`:                                                   `"simulated@example.com"`,
		`{"type":"string","format":"uri","pattern":"^ftp://[a-z]+$"}`:                                                      `"ftp://a"`,
		`{"type":"string","minLength":-1e300,"maxLength":1e300}`:                                                           `"simulated"`,
		`{"type":"string","pattern":"^[A-Z]{2}-\\d+$"}`:                                                                    `"AA-0"`,
		`{"type":"string","pattern":"^[a-c]*$","minLength":4}`:                                                             `"aaaaaaa"`,
		`{"anyOf":[{"type":"string","maxLength":2,"minLength":3},{"type":"null"}]}`:                                        `null`,
		`{"oneOf":[{"type":"number"},{"type":"integer"},{"type":"null"}]}`:                                                 `null`,
		`{"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},{"type":"null"}]}`:                  `{"k": "a"}`,
		`{"allOf":[{"type":"object","required":["a"]},{"properties":{"a":{"type":"null"}}}]}`:                              `{"a": null}`,
		`{"type":"integer","not":{"const":1},"enum":[1,2]}`:                                                                `2`,
		`{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"type":"null"}}}`:                                                          `null`,
		`{"definitions":{"x":{"const":3}},"type":"object","properties":{"v":{"$ref":"#/definitions/x"}},"required":["v"]}`: `{"v": 3}`,
		`{"type":"object","required":["x"]}`:                                                                               `{"x": "simulated"}`,
		`{"type":"object","additionalProperties":{"type":"integer"},"minProperties":2}`:                                    `{"simulated1": 1, "simulated2": 1}`,
		`{"type":"object","propertyNames":{"pattern":"^s"},"minProperties":1}`:                                             `{"simulated1": "simulated"}`,
		`{"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"required":["b"]},"type":"object","properties":{"a":{"const":1},"b":{"type":"null"}}}`: `{"a": 1, "b": null}`,
		// A list of itself ends: deep down the branch is taken that goes no deeper.
		`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["next"]}}}`: `{"next": {"next": {"next": null}}}`,
		`{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}},"required":["kids"]}`:                                               `{"kids": [{"kids": []}]}`,
	} {
		got, err := makeJSON([]byte(schema))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", schema, got, err, want)
		}
	}
}

func TestMakeJSONRefuses(t *testing.T) {
	deep := strings.Repeat(`{"items":`, 120) + `{}` + strings.Repeat(`}`, 120)
	for schema, why := range map[string]string{
		`{"type":"nosuch"}`: "Invalid type: nosuch",
		`{"type":"object","properties":{"a":{"type":"nosuch"}}}`: "Invalid type: nosuch",
		`false`: "false allows no value",
		`7`:     "must be an object or a boolean",
		`{"type":"string","minLength":3,"maxLength":2}`:                                                              "does not fit",
		`{"type":"integer","minimum":3,"maximum":2}`:                                                                 "does not fit",
		`{"type":"string","pattern":"^((()*)*)*x$","minLength":9}`:                                                   "",
		`{"type":"string","pattern":"(((x*)*)*)*","minLength":3000}`:                                                 "",
		`{"type":"array","minItems":9000,"items":{"type":"string","pattern":"^([a-z]{1,99}){10}$","minLength":990}}`: "steps",
		`{"type":"string","pattern":"` + strings.Repeat("(a{900})", 60) + `"}`:                                       "no string for the pattern",
		`{"type":"string","pattern":"^(?=a)b"}`:                                                                      "no string for the pattern",
		`{"allOf":[{"type":"string"},{"type":"null"}]}`:                                                              "two types at once",
		`{"$ref":"https://example.com/schema.json"}`:                                                                 "cannot follow $ref",
		`{"$ref":"#/$defs/none"}`:                                                                                    "leads nowhere",
		`{"$ref":"#"}`:                                                                                               "round in a circle",
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`:                                         "deeper than",
		`{"type":"array","items":{"type":"null"},"minItems":100000000}`:                                              "steps",
		`{"type":"string","minLength":100000000}`:                                                                    "longer than",
		`{"enum":[]}`: "no value of enum",
		`{"type":"object","dependentSchemas":{}}`:                              "dependentSchemas",
		`{"type":"object","required":["a"],"patternProperties":{"^(?=a)":{}}}`: "cannot read the pattern",
		deep:          "levels deep",
		`{"a":1e999}`: "out of range",
		`{"minLength":"` + strings.Repeat("x", maxSchema) + `"}`: "the limit is",
		// Two of itself, for ever: it costs no more than its steps.
		`{"type":"object","properties":{"l":{"$ref":"#"},"r":{"$ref":"#"}},"required":["l","r"]}`: "deeper than",
	} {
		got, err := makeJSON([]byte(schema))
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.200s: %s, %v, want an error that says %q", schema, got, err, why)
		}
	}
}

// Whatever the schema, the maker ends, within its bounds, with JSON that fits or with a reason.
func FuzzMakeJSON(f *testing.F) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"type":["string","null"],"pattern":"^x+$"}},"required":["a"]}`,
		`{"anyOf":[{"$ref":"#/$defs/a"},{"type":"array","items":{"$ref":"#"},"minItems":2,"uniqueItems":true}],"$defs":{"a":{"oneOf":[true,false]}}}`,
		`{"if":{"type":"integer"},"then":{"minimum":1},"else":{"not":{"type":"string"}},"multipleOf":0.1}`,
		`{"allOf":[{"$ref":"#"}],"enum":[1,"a",{"b":[]}]}`,
	} {
		f.Add([]byte(schema))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		made, err := makeJSON(schema)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a reason")
			}
			return
		}
		if !json.Valid(made) || len(made) > 4*maxValueBytes+len(schema) {
			t.Fatalf("%d bytes, valid: %v", len(made), json.Valid(made))
		}
		value, err := parseNode(made)
		if err != nil {
			return // deeper or longer than a schema may be, by a constant of the schema
		}
		root, err := parseNode(schema)
		if err != nil {
			t.Fatal(err)
		}
		m := newMaker(root)
		if !m.fits(root, value, 0) && m.wrong == nil {
			t.Errorf("%s does not fit", made)
		}
	})
}

// TestMakeJSONCopies: a constant of the schema counts for its length as often as it stands in the
// answer. 2,500 copies of 200 KB took 4 GB.
func TestMakeJSONCopies(t *testing.T) {
	text := strings.Repeat("x", 200<<10)
	for _, schema := range []string{
		`{"type":"array","minItems":2500,"items":{"const":"` + text + `"}}`,
		`{"type":"array","minItems":2500,"items":{"enum":["` + text + `"]}}`,
	} {
		if out, err := makeJSON([]byte(schema)); err == nil || !strings.Contains(err.Error(), "longer than") {
			t.Errorf("%d bytes, %v", len(out), err)
		}
	}
}
