package milvus

import (
	"regexp"
	"testing"
	"time"

	"kvasir/cache"
)

func TestExpressions(t *testing.T) {
	scope, id, now := cache.Scope{0xab}, cache.ID(0x12), time.UnixMilli(1234)
	tenant, model := `" || "" == "`, "model"
	const ofScope = `scope == "ab000000000000000000000000000000"`
	for want, got := range map[string]string{
		ofScope + ` && semantic == true && expires > 1234`: searchable(scope, now),
		`expires <= 1234`:   expiredBy(now),
		`id in ["00","ff"]`: among([]string{"00", "ff"}),
		`expires >= 0`:      named(&cache.Filter{}),
		`entry == "0000000000000012" && ` + ofScope:                                                       named(&cache.Filter{ID: &id, Scope: &scope}),
		`model_key == "9372c470eeadd5ecd9c3c74c2b3cb633"`:                                                 named(&cache.Filter{Model: &model}),
		`tenant_key == "` + nameKey(tenant) + `" && ` + `model_key == "9372c470eeadd5ecd9c3c74c2b3cb633"`: named(&cache.Filter{Tenant: &tenant, Model: &model}),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestExpressionTakesDigitsOnly(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	among([]string{`" or true`})
}

// FuzzExpression: no name can break out of its string.
func FuzzExpression(f *testing.F) {
	f.Add("plain", `" || "" == "`)
	f.Add(`\`, "\x00\xff")
	f.Add("", "名前")
	shape := regexp.MustCompile(`^tenant_key == "[0-9a-f]{32}" && model_key == "[0-9a-f]{32}"$`)
	f.Fuzz(func(t *testing.T, tenant, model string) {
		got := named(&cache.Filter{Tenant: &tenant, Model: &model})
		if !shape.MatchString(got) {
			t.Errorf("%q and %q make %s", tenant, model, got)
		}
		if (tenant == model) != (nameKey(tenant) == nameKey(model)) {
			t.Errorf("%q and %q have one key", tenant, model)
		}
	})
}
