// A fake Milvus, for behaviour that a real one does not show in a test: refusing a token, lacking
// a database, TLS, broken replies.

package milvus

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"kvasir/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A double has one existing collection. Functions that are not nil answer instead of the
// defaults.
type double struct {
	milvuspb.UnimplementedMilvusServiceServer
	connect func(metadata.MD) *commonpb.Status
	refuse  func() error // before any call
	query   func(context.Context, *milvuspb.QueryRequest) (*milvuspb.QueryResults, error)
	search  func(context.Context) (*milvuspb.SearchResults, error)
	upsert  func(*milvuspb.UpsertRequest) *commonpb.Status
	id      int64 // of the collection

	mu      sync.Mutex // guards upserts, and is held while upsert answers
	upserts []*milvuspb.UpsertRequest
}

func (d *double) Connect(ctx context.Context, _ *milvuspb.ConnectRequest) (*milvuspb.ConnectResponse, error) {
	if d.refuse != nil {
		return nil, d.refuse()
	}
	said := &commonpb.Status{}
	if d.connect != nil {
		md, _ := metadata.FromIncomingContext(ctx)
		said = d.connect(md)
	}
	return &milvuspb.ConnectResponse{Status: said, ServerInfo: &commonpb.ServerInfo{}}, nil
}

func (d *double) DescribeCollection(_ context.Context, r *milvuspb.DescribeCollectionRequest) (*milvuspb.DescribeCollectionResponse, error) {
	schema := schemaOf(r.CollectionName, "", true).ProtoMessage()
	return &milvuspb.DescribeCollectionResponse{Status: &commonpb.Status{}, Schema: schema, CollectionName: r.CollectionName, CollectionID: d.id}, nil
}

func (d *double) HasCollection(context.Context, *milvuspb.HasCollectionRequest) (*milvuspb.BoolResponse, error) {
	return &milvuspb.BoolResponse{Status: &commonpb.Status{}, Value: true}, nil
}

func (d *double) DescribeIndex(context.Context, *milvuspb.DescribeIndexRequest) (*milvuspb.DescribeIndexResponse, error) {
	params := entity.MapKvPairs(map[string]string{"index_type": "HNSW", "metric_type": "COSINE"})
	return &milvuspb.DescribeIndexResponse{Status: &commonpb.Status{}, IndexDescriptions: []*milvuspb.IndexDescription{{FieldName: fieldEmbedding, Params: params}}}, nil
}

func (d *double) LoadCollection(context.Context, *milvuspb.LoadCollectionRequest) (*commonpb.Status, error) {
	return &commonpb.Status{}, nil
}

func (d *double) GetLoadingProgress(context.Context, *milvuspb.GetLoadingProgressRequest) (*milvuspb.GetLoadingProgressResponse, error) {
	return &milvuspb.GetLoadingProgressResponse{Status: &commonpb.Status{}, Progress: 100}, nil
}

func (d *double) Query(ctx context.Context, r *milvuspb.QueryRequest) (*milvuspb.QueryResults, error) {
	if d.query != nil {
		return d.query(ctx, r)
	}
	return found(r.OutputFields), nil
}

func (d *double) Search(ctx context.Context, _ *milvuspb.SearchRequest) (*milvuspb.SearchResults, error) {
	if d.search != nil {
		return d.search(ctx)
	}
	return &milvuspb.SearchResults{Status: &commonpb.Status{}, Results: &schemapb.SearchResultData{}}, nil
}

func (d *double) Upsert(_ context.Context, r *milvuspb.UpsertRequest) (*milvuspb.MutationResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.upserts = append(d.upserts, r)
	said := &commonpb.Status{}
	if d.upsert != nil {
		said = d.upsert(r)
	}
	ids := &schemapb.IDs{IdField: &schemapb.IDs_StrId{StrId: &schemapb.StringArray{}}}
	return &milvuspb.MutationResult{Status: said, IDs: ids}, nil
}

// found returns a reply with these rows.
func found(fields []string, rows ...*row) *milvuspb.QueryResults {
	reply := &milvuspb.QueryResults{Status: &commonpb.Status{}}
	for _, field := range fields {
		if strings.HasPrefix(field, "count") {
			reply.FieldsData = append(reply.FieldsData, entity.NewColumnInt64(field, []int64{int64(len(rows))}).FieldData())
			continue
		}
		var texts []string
		var numbers []int64
		for _, r := range rows {
			if text, number := r.field(field); text != nil {
				texts = append(texts, *text)
			} else {
				numbers = append(numbers, *number)
			}
		}
		if _, number := new(row).field(field); number != nil {
			reply.FieldsData = append(reply.FieldsData, entity.NewColumnInt64(field, numbers).FieldData())
		} else {
			reply.FieldsData = append(reply.FieldsData, entity.NewColumnVarChar(field, texts).FieldData())
		}
	}
	return reply
}

// serve starts the double on loopback.
func (d *double) serve(t *testing.T, options ...grpc.ServerOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	milvuspb.RegisterMilvusServiceServer(server, d)
	var group sync.WaitGroup
	group.Go(func() { _ = server.Serve(listener) }) // ends at Stop
	t.Cleanup(func() {
		server.Stop()
		group.Wait()
	})
	return listener.Addr().String()
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // some tests want an error of it
	return s
}

// connected waits until the store has no problem. On a busy machine a call may take longer than
// the budget of a lookup.
func connected(t *testing.T, d *double) *Store {
	t.Helper()
	s := open(t, Options{Address: d.serve(t), Timeout: 20 * time.Second})
	eventually(t, func() bool { return s.session.Load() != nil })
	return s
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within a minute")
		}
	}
}

func entryOf(text, answer string) *cache.Entry {
	now := time.Now()
	return &cache.Entry{ID: cache.NewID(), Scope: cache.Scope{1}, Tenant: "tenant", Model: "model", Text: text, Answer: []byte(answer), Created: now, Expires: now.Add(time.Hour)}
}
