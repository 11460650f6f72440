// Rows: reading from a collection and writing to it.

package milvus

import (
	"context"
	"fmt"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"kvasir/cache"
)

// Lookups do not wait for the latest writes, because a cache may miss a young entry. With a
// stronger level Milvus would hold a query back until its next time tick, for up to 200 ms, ten
// times the budget.
var (
	atOnce  = client.WithSearchQueryConsistencyLevel(entity.ClEventually)
	inOrder = client.WithSearchQueryConsistencyLevel(entity.ClStrong)
)

// searchParam makes a new parameter for each search, because the SDK writes into it.
func (on *session) searchParam() entity.SearchParam {
	const breadth = 64 // candidates that HNSW keeps while it looks
	var p entity.SearchParam
	var err error
	switch on.index {
	case entity.HNSW:
		p, err = entity.NewIndexHNSWSearchParam(breadth)
	case entity.AUTOINDEX:
		p, err = entity.NewIndexAUTOINDEXSearchParam(1)
	default:
		p, err = entity.NewIndexFlatSearchParam()
	}
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return p
}

// get returns the row with a key, if there is one.
func (on *session) get(ctx context.Context, key string) ([]*row, error) {
	return on.find(ctx, among([]string{key}))
}

// find returns the rows that an expression selects; they must be few.
func (on *session) find(ctx context.Context, expression string) (rows []*row, err error) {
	defer recovered(&err)
	found, err := on.client.Query(ctx, on.name, nil, expression, readable, atOnce)
	if err != nil {
		return nil, err
	}
	return rowsOf(found, found.Len())
}

// search returns the rows of a scope that are nearest to a vector, the most
// similar first, and their cosines.
func (on *session) search(ctx context.Context, scope cache.Scope, vector *[cache.Dim]float32, k int, now time.Time) (rows []*row, scores []float32, err error) {
	defer recovered(&err)
	found, err := on.client.Search(ctx, on.name, nil, searchable(scope, now), readable,
		[]entity.Vector{entity.FloatVector(vector[:])}, fieldEmbedding, entity.COSINE, k, on.searchParam(), atOnce)
	if err != nil || len(found) == 0 || found[0].ResultCount == 0 {
		return nil, nil, err
	}
	if found[0].Err != nil {
		return nil, nil, found[0].Err
	}
	rows, err = rowsOf(found[0].Fields, found[0].ResultCount)
	return rows, found[0].Scores, err
}

// rowsOf turns columns into rows without their vectors.
func rowsOf(columns client.ResultSet, n int) ([]*row, error) {
	rows := make([]*row, n)
	for i := range rows {
		rows[i] = new(row)
	}
	for _, field := range readable {
		column := columns.GetColumn(field)
		if n > 0 && (column == nil || column.Len() < n) {
			return nil, fmt.Errorf("the reply lacks the field %q", field)
		}
		for i, r := range rows {
			var err error
			if text, number := r.field(field); text != nil {
				*text, err = column.GetAsString(i)
			} else {
				*number, err = column.GetAsInt64(i)
			}
			if err != nil {
				return nil, fmt.Errorf("cannot read the field %q: %w", field, err)
			}
		}
	}
	return rows, nil
}

// field returns a pointer to one of the readable fields: text or number; the other is nil.
func (r *row) field(name string) (text *string, number *int64) {
	switch name {
	case fieldKey:
		return &r.key, nil
	case fieldScope:
		return &r.scope, nil
	case fieldEntry:
		return &r.entry, nil
	case fieldTenant:
		return &r.tenant, nil
	case fieldModel:
		return &r.model, nil
	case fieldText:
		return &r.text, nil
	case fieldAnswer:
		return &r.answer, nil
	case fieldCreated:
		return nil, &r.created
	case fieldExpires:
		return nil, &r.expires
	}
	panic("BUG: no readable field " + name)
}

// upsert writes rows, and replaces those with the same keys.
func (on *session) upsert(ctx context.Context, rows []*row) (err error) {
	defer recovered(&err)
	texts := map[string][]string{}
	created, expires := make([]int64, len(rows)), make([]int64, len(rows))
	semantic, vectors := make([]bool, len(rows)), make([][]float32, len(rows))
	for i, r := range rows {
		for _, field := range readable {
			if text, _ := r.field(field); text != nil {
				texts[field] = append(texts[field], *text)
			}
		}
		texts[fieldTenantKey] = append(texts[fieldTenantKey], nameKey(r.tenant))
		texts[fieldModelKey] = append(texts[fieldModelKey], nameKey(r.model))
		created[i], expires[i], semantic[i], vectors[i] = r.created, r.expires, r.semantic, r.vector
	}
	columns := []entity.Column{
		entity.NewColumnInt64(fieldCreated, created), entity.NewColumnInt64(fieldExpires, expires),
		entity.NewColumnBool(fieldSemantic, semantic), entity.NewColumnFloatVector(fieldEmbedding, cache.Dim, vectors),
	}
	for field, values := range texts {
		columns = append(columns, entity.NewColumnVarChar(field, values))
	}
	_, err = on.client.Upsert(ctx, on.name, "", columns...)
	return err
}

// names returns the keys of at most limit rows that an expression selects, and when each expires.
// It sees all earlier writes and deletes.
func (on *session) names(ctx context.Context, expression string, limit int) (keys []string, expires []int64, err error) {
	defer recovered(&err)
	found, err := on.client.Query(ctx, on.name, nil, expression, []string{fieldKey, fieldExpires}, inOrder, client.WithLimit(int64(limit)))
	if err != nil || found.Len() == 0 {
		return nil, nil, err
	}
	k, ok := found.GetColumn(fieldKey).(*entity.ColumnVarChar)
	x, also := found.GetColumn(fieldExpires).(*entity.ColumnInt64)
	if !ok || !also || k.Len() != x.Len() {
		return nil, nil, fmt.Errorf("the reply lacks the field %q or %q", fieldKey, fieldExpires)
	}
	return k.Data(), x.Data(), nil
}

func (on *session) delete(ctx context.Context, expression string) (err error) {
	defer recovered(&err)
	return on.client.Delete(ctx, on.name, "", expression)
}

// count returns how many rows an expression selects.
func (on *session) count(ctx context.Context, expression string) (n int64, err error) {
	defer recovered(&err)
	const all = "count(*)"
	found, err := on.client.Query(ctx, on.name, nil, expression, []string{all}, atOnce)
	if err != nil {
		return 0, err
	}
	return found.GetColumn(all).GetAsInt64(0)
}
