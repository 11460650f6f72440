package milvus

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"kvasir/cache"
)

func rowOf(key string, bytes int) *row { return &row{key: key, answer: strings.Repeat("x", bytes)} }

func TestQueueIsBounded(t *testing.T) {
	q := newQueue()
	for i := range queueRows {
		if err := q.push(rowOf(strconv.Itoa(i), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.push(rowOf("more", 0)); !errors.Is(err, cache.ErrFull) {
		t.Errorf("too many rows: %v", err)
	}
	if n := q.clear(); n != queueRows || q.len() != 0 || q.bytes != 0 {
		t.Errorf("cleared %d, %d rows and %d bytes are left", n, q.len(), q.bytes)
	}

	const big = 1 << 20
	n := 0
	for q.push(rowOf(strconv.Itoa(n), big)) == nil {
		n++
	}
	if n < queueBytes/big-2 || n > queueBytes/big || q.bytes > queueBytes {
		t.Errorf("%d rows of %d bytes are in, %d bytes", n, big, q.bytes)
	}
	q.close()
	if err := q.push(rowOf("late", 0)); !errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("closed: %v", err)
	}
}

func TestQueueBatches(t *testing.T) {
	for name, c := range map[string]struct {
		rows []*row
		want int
	}{
		"none":           {nil, 0},
		"all":            {[]*row{rowOf("a", 0), rowOf("b", 0)}, 2},
		"a key twice":    {[]*row{rowOf("a", 0), rowOf("b", 0), rowOf("a", 0), rowOf("c", 0)}, 2},
		"many bytes":     {[]*row{rowOf("a", batchBytes/2), rowOf("b", batchBytes/2), rowOf("c", 0)}, 1},
		"one giant":      {[]*row{rowOf("a", 2*batchBytes), rowOf("b", 0)}, 1},
		"as many as can": {many(2 * batchRows), batchRows},
	} {
		q := newQueue()
		for _, r := range c.rows {
			if err := q.push(r); err != nil {
				t.Fatal(err)
			}
		}
		got, closed := q.batch()
		if len(got) != c.want || closed || q.len() != len(c.rows) {
			t.Errorf("%s: %d rows, %t, %d are left, want %d", name, len(got), closed, q.len(), c.want)
		}
		for i, r := range got {
			if r != c.rows[i] {
				t.Errorf("%s: row %d is %q", name, i, r.key)
			}
		}
	}
}

func many(n int) []*row {
	rows := make([]*row, n)
	for i := range rows {
		rows[i] = rowOf(strconv.Itoa(i), 0)
	}
	return rows
}
