// Session: one connection to Milvus whose collection exists, has the right shape, and is loaded.
// Only this file and rows.go call the SDK.

package milvus

import (
	"context"
	"fmt"
	"strings"
	"time"

	retry "github.com/grpc-ecosystem/go-grpc-middleware/retry"
	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

// A session is safe for concurrent use.
type session struct {
	client *client.GrpcClient
	name   string           // of the collection
	index  entity.IndexType // of the embeddings
	lite   bool             // the server is a Milvus Lite

	identity string // of the collection among all others
}

// dial returns a client that has not sent a byte yet.
func dial(ctx context.Context, o *Options) (*client.GrpcClient, error) {
	options := []grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
			MinConnectTimeout: 3 * time.Second,
		}),
		// Only while calls are under way, and rarely: servers disconnect clients that ping more
		// often.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20)),
		grpc.WithChainUnaryInterceptor(guarded),
	}
	if o.TLS != nil {
		options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(o.TLS)))
	}
	// The SDK sends a user and password in the same way as a key. It could connect by itself, but
	// does not close a connection that failed.
	made, err := client.NewClient(ctx, client.Config{
		Address: o.Address, APIKey: o.Token, DisableConn: true, DialOptions: options,
		RetryRateLimit: &client.RetryRateLimitOption{},
	})
	if err != nil {
		return nil, err
	}
	return made.(*client.GrpcClient), nil
}

// A refusal is an error reply of Milvus.
type refusal struct {
	code   int32              // of Milvus 2.3 and later
	legacy commonpb.ErrorCode // of those before, and of Milvus Lite
	reason string
	passes bool // the same call may be accepted later: a rate limit, a node that moves
}

func (r *refusal) Error() string { return r.reason }

// guarded makes one call, without the SDK's retries: those would run until the budget ends and
// hide why the call failed. It reads both error codes of the status; the SDK drops one and
// ignores the other.
func guarded(ctx context.Context, method string, request, reply any, to *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if err := call(ctx, method, request, reply, to, append(options, retry.Disable())...); err != nil {
		return err
	}
	status, _ := reply.(*commonpb.Status)
	if r, ok := reply.(interface{ GetStatus() *commonpb.Status }); ok {
		status = r.GetStatus()
	}
	legacy := status.GetErrorCode() //nolint:staticcheck // deprecated, and all that an older Milvus sends
	if status.GetCode() != 0 || legacy != commonpb.ErrorCode_Success {
		passes := status.GetRetriable() || legacy == commonpb.ErrorCode_RateLimit
		return &refusal{status.GetCode(), legacy, status.GetReason(), passes}
	}
	return nil
}

// recovered turns a panic of the SDK, which trusts the lengths in a reply, into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("cannot read the reply of Milvus: %v", r)
	}
}

// begin connects, and creates and loads the collection if needed.
func begin(ctx context.Context, o *Options, name string) (*session, error) {
	c, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	on := &session{client: c, name: name}
	if err := on.begin(ctx, o.Version); err != nil {
		on.end()
		return nil, err
	}
	return on, nil
}

func (on *session) begin(ctx context.Context, version string) (err error) {
	defer recovered(&err)
	if err := on.greet(ctx); err != nil {
		return err
	}
	if err := on.prepare(ctx, version); err != nil {
		return err
	}
	return on.client.LoadCollection(ctx, on.name, false)
}

// greet checks that a Milvus is there, that the token is valid and that the database exists.
func (on *session) greet(ctx context.Context) error {
	reply, err := on.client.Service.Connect(ctx, &milvuspb.ConnectRequest{ClientInfo: &commonpb.ClientInfo{
		SdkType: "Golang", User: "kvasir", LocalTime: time.Now().String(),
	}})
	on.lite = strings.HasPrefix(reply.GetServerInfo().GetBuildTags(), "milvus_lite")
	return err
}

// prepare creates the collection and its index if they do not exist, and checks them if they do.
func (on *session) prepare(ctx context.Context, version string) error {
	have, err := on.client.DescribeCollection(ctx, on.name)
	if isMissing(err) {
		if err := on.create(ctx, version); err != nil {
			return err
		}
		have, err = on.client.DescribeCollection(ctx, on.name)
	}
	if err != nil {
		return err
	}
	on.identity = fmt.Sprintf("%s %d", on.name, have.ID)
	if err := checkSchema(schemaOf(on.name, version, false), have.Schema); err != nil {
		return err
	}
	return on.prepareIndex(ctx)
}

// create creates the collection, without partitions if the server has none. If another replica
// has created it first, that is no error: the collection is checked next.
func (on *session) create(ctx context.Context, version string) error {
	var err error
	for _, partitions := range []bool{true, false} {
		if err = on.client.CreateCollection(ctx, schemaOf(on.name, version, partitions), 1, client.WithConsistencyLevel(entity.ClEventually)); err == nil {
			return nil
		}
		if _, describe := on.client.DescribeCollection(ctx, on.name); describe == nil {
			return nil
		}
	}
	return err
}

// indexes returns the kinds of index to try, the preferred one first. The server's own choice is
// HNSW in most installations, and the only one that a hosted Milvus accepts. If few rows pass the
// filter, Milvus compares each of them instead of using the index. The HNSW of Milvus Lite does
// not, and then finds nothing in a small scope among large ones.
func (on *session) indexes() []entity.Index {
	params := func(kind entity.IndexType, more string) entity.Index {
		p := map[string]string{"index_type": string(kind), "metric_type": string(entity.COSINE)}
		if more != "" {
			p["params"] = more
		}
		return entity.NewGenericIndex("", kind, p)
	}
	flat := params(entity.Flat, "")
	if on.lite {
		return []entity.Index{flat}
	}
	return []entity.Index{params(entity.AUTOINDEX, ""), params(entity.HNSW, `{"M":16,"efConstruction":200}`), flat}
}

// prepareIndex finds the index of the embeddings or creates it.
func (on *session) prepareIndex(ctx context.Context) error {
	found, err := on.indexThatIs(ctx)
	if err != nil || found {
		return err
	}
	for _, index := range on.indexes() {
		if err = on.client.CreateIndex(ctx, on.name, fieldEmbedding, index, true); err == nil {
			break
		}
	}
	if found, again := on.indexThatIs(ctx); again != nil || found {
		return again
	}
	return err
}

// indexThatIs records the kind of an existing index.
func (on *session) indexThatIs(ctx context.Context) (bool, error) {
	have, err := on.client.DescribeIndex(ctx, on.name, fieldEmbedding)
	if isMissing(err) || err == nil && len(have) == 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	params := have[0].Params()
	if metric := params["metric_type"]; metric != string(entity.COSINE) {
		return false, &mismatch{fmt.Sprintf("its embeddings are compared by %s, not %s", metric, entity.COSINE)}
	}
	on.index = entity.IndexType(params["index_type"])
	return true, nil
}

// end closes the connection; calls that are under way fail.
func (on *session) end() { _ = on.client.Close() } // its only error is that it was closed before
