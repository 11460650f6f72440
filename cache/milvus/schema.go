// Schema: the shape of a collection, its name, and the check of an existing collection.

package milvus

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"kvasir/cache"
)

// form is the version of the fields below and of their contents.
const form = 1

// Fields of a collection.
const (
	fieldKey       = "id"
	fieldScope     = "scope"
	fieldEntry     = "entry"
	fieldTenantKey = "tenant_key"
	fieldModelKey  = "model_key"
	fieldTenant    = "tenant"
	fieldModel     = "model"
	fieldText      = "text"
	fieldAnswer    = "answer"
	fieldCreated   = "created"
	fieldExpires   = "expires"
	fieldSemantic  = "semantic"
	fieldEmbedding = "embedding"
)

// readable are the fields of an entry.
var readable = []string{fieldKey, fieldScope, fieldEntry, fieldTenant, fieldModel, fieldText, fieldAnswer, fieldCreated, fieldExpires}

// nameOf returns the collection's name. Another form or embedding gives another name, so that no
// version reads rows that it cannot understand.
func nameOf(collection, version string) string {
	sum := sha256.Sum256([]byte(version))
	return fmt.Sprintf("%s_v%d_%x", collection, form, sum[:4])
}

// schemaOf returns the shape of the collection. With partitions, the server keeps the entries of
// a scope together and searches only there.
func schemaOf(name, version string, partitions bool) *entity.Schema {
	text := func(field string, length int64) *entity.Field {
		return entity.NewField().WithName(field).WithDataType(entity.FieldTypeVarChar).WithMaxLength(length)
	}
	number := func(field string) *entity.Field {
		return entity.NewField().WithName(field).WithDataType(entity.FieldTypeInt64)
	}
	return entity.NewSchema().WithName(name).
		WithDescription(fmt.Sprintf("Kvasir's semantic cache, form %d, embedding %s", form, version)).
		WithField(text(fieldKey, 2*sha256.Size).WithIsPrimaryKey(true)).
		WithField(text(fieldScope, 32).WithIsPartitionKey(partitions)).
		WithField(text(fieldEntry, 16)).
		WithField(text(fieldTenantKey, 32)).
		WithField(text(fieldModelKey, 32)).
		WithField(text(fieldTenant, maxName)).
		WithField(text(fieldModel, maxName)).
		WithField(text(fieldText, maxVarChar)).
		WithField(text(fieldAnswer, maxVarChar)).
		WithField(number(fieldCreated)).
		WithField(number(fieldExpires)).
		WithField(entity.NewField().WithName(fieldSemantic).WithDataType(entity.FieldTypeBool)).
		WithField(entity.NewField().WithName(fieldEmbedding).WithDataType(entity.FieldTypeFloatVector).WithDim(cache.Dim))
}

// A mismatch says how a collection differs from the required one.
type mismatch struct{ how string }

func (m *mismatch) Error() string { return m.how }

// checkSchema compares an existing collection with the required one. Additional fields are a
// mismatch too, because no row could be written.
func checkSchema(want, have *entity.Schema) error {
	fields := map[string]*entity.Field{}
	for _, f := range have.Fields {
		fields[f.Name] = f
	}
	for _, w := range want.Fields {
		h := fields[w.Name]
		delete(fields, w.Name)
		if err := checkField(w, h); err != nil {
			return err
		}
	}
	for name := range fields {
		return &mismatch{fmt.Sprintf("it has a field %q that is not of the cache", name)}
	}
	return nil
}

func checkField(want, have *entity.Field) error {
	switch {
	case have == nil:
		return &mismatch{fmt.Sprintf("it has no field %q", want.Name)}
	case have.DataType != want.DataType:
		return &mismatch{fmt.Sprintf("its field %q is of type %s, not %s", want.Name, have.DataType.Name(), want.DataType.Name())}
	case have.PrimaryKey != want.PrimaryKey || have.AutoID:
		return &mismatch{fmt.Sprintf("its primary key is not the field %q", fieldKey)}
	case want.TypeParams[entity.TypeParamDim] != have.TypeParams[entity.TypeParamDim]:
		return &mismatch{fmt.Sprintf("its vectors have %s dimensions, not %s", have.TypeParams[entity.TypeParamDim], want.TypeParams[entity.TypeParamDim])}
	}
	if length := have.TypeParams[entity.TypeParamMaxLength]; length != "" {
		w, _ := strconv.Atoi(want.TypeParams[entity.TypeParamMaxLength])
		if h, err := strconv.Atoi(length); err != nil || h < w {
			return &mismatch{fmt.Sprintf("its field %q holds %s bytes, not %d", want.Name, length, w)}
		}
	}
	return nil
}
