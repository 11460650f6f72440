// Expression: filters for Milvus. They contain only hexadecimal digits and numbers from outside,
// so nothing needs quoting, and no value can break out of a string.

package milvus

import (
	"strconv"
	"strings"
	"time"

	"kvasir/cache"
)

// digits returns s if it has only hexadecimal digits. Anything else is a bug.
func digits(s string) string {
	if strings.Trim(s, "0123456789abcdef") != "" {
		panic("BUG: an expression with " + strconv.Quote(s))
	}
	return s
}

func equals(field, value string) string { return field + ` == "` + digits(value) + `"` }

// among selects the rows with these keys.
func among(keys []string) string {
	var b strings.Builder
	b.WriteString(fieldKey + " in [")
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + digits(key) + `"`)
	}
	b.WriteByte(']')
	return b.String()
}

func expiredBy(now time.Time) string {
	return fieldExpires + " <= " + strconv.FormatInt(now.UnixMilli(), 10)
}

func aliveAt(now time.Time) string {
	return fieldExpires + " > " + strconv.FormatInt(now.UnixMilli(), 10)
}

// searchable selects the entries of a scope that a vector may find.
func searchable(scope cache.Scope, now time.Time) string {
	return equals(fieldScope, scope.String()) + " && " + fieldSemantic + " == true && " + aliveAt(now)
}

// named converts a Filter; one without a condition selects all rows.
func named(f *cache.Filter) string {
	var all []string
	if f.ID != nil {
		all = append(all, equals(fieldEntry, f.ID.String()))
	}
	if f.Scope != nil {
		all = append(all, equals(fieldScope, f.Scope.String()))
	}
	if f.Tenant != nil {
		all = append(all, equals(fieldTenantKey, nameKey(*f.Tenant)))
	}
	if f.Model != nil {
		all = append(all, equals(fieldModelKey, nameKey(*f.Model)))
	}
	if len(all) == 0 {
		return fieldExpires + " >= 0"
	}
	return strings.Join(all, " && ")
}
