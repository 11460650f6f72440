// Kind dynamo: NVIDIA Dynamo's workers, by what they register in etcd or in its directory.

package discovery

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvasir/discovery/etcd"
	"kvasir/filewatch"
	"kvasir/kvroute"
	"kvasir/upstream"
)

// Where Dynamo 1.x registers things, and what its defaults are.
const (
	instanceKeys     = "v1/instances/" // NAMESPACE/COMPONENT/ENDPOINT/ID of who serves an endpoint
	cardKeys         = "v1/mdc/"       // the same and, for an adapter, its name: a model that is served there
	defaultNamespace = "dynamo"

	// fileTTL is how old a file of its directory may be. Whoever stands behind one touches
	// it every three seconds, and Dynamo takes those for gone that nobody touched for ten.
	fileTTL = 15 * time.Second

	// maxDynamoKeys bounds the keys: workers have several.
	maxDynamoKeys = 8 * maxWorkers
)

var dynamoKind = kind{
	name:  "dynamo",
	keys:  []string{"endpoints", "path", "namespace", "frontend", "user", "password_file"},
	label: labelDynamo,
	check: checkDynamo,
	run:   runDynamo,
}

func labelDynamo(e *Entry) string {
	if e.Path != "" {
		return e.dynamoNamespace() + " in " + e.Path
	}
	return e.dynamoNamespace() + " at " + etcd.Address(e.Etcd.Endpoints[0])
}

func (e *Entry) dynamoNamespace() string { return cmp.Or(e.Namespace, defaultNamespace) }

func checkDynamo(e *Entry) (key, wrong string) {
	switch {
	case e.Path != "" && len(e.Etcd.Endpoints) > 0:
		return "path", "is set together with endpoints; set the one where Dynamo registers its workers"
	case e.Path == "" && len(e.Etcd.Endpoints) == 0:
		return "endpoints", "is missing; give the URLs of etcd's servers, such as [http://10.0.0.1:2379], or path, the directory of Dynamo's file backend (DYN_FILE_KV)"
	case strings.ContainsAny(e.Namespace, "/ "):
		return "namespace", "is no namespace of Dynamo, such as dynamo-vllm"
	case e.Frontend == "":
		return "frontend", "is missing; give the URL of a Dynamo frontend in direct mode (--router-mode direct), such as http://10.0.0.5:8000"
	}
	if e.Path == "" {
		if wrong := checkServers(e.Etcd.Endpoints); wrong != "" {
			return "endpoints", wrong
		}
	}
	return "", ""
}

func runDynamo(src *source) {
	if e := src.now(); e.Path != "" {
		runDynamoFiles(src)
		return
	}
	made := dynamoMade{}
	f := &follower[dynamoKey]{
		src: src, most: maxDynamoKeys,
		prefixes: func(e *Entry) []string {
			return []string{instanceKeys + e.dynamoNamespace() + "/", cardKeys + e.dynamoNamespace() + "/"}
		},
		keys: newKeyTable(readDynamo),
	}
	f.found = func() report { return made.workers(&f.entry, src.called(), f.keys) }
	f.run()
}

// A dynamoKey is what one key says: an instance, or a model that it serves.
type dynamoKey struct {
	instance string      // COMPONENT/ENDPOINT/ID
	id       uint64      // of the instance
	model    *dynamoCard // nil: it is the instance itself
}

// A dynamoCard is what is used of a model's card (lib/llm/src/model_card.rs).
type dynamoCard struct {
	Name       string `json:"display_name"`
	BlockSize  int    `json:"kv_cache_block_size"`
	ModelType  string `json:"model_type"`
	WorkerType string `json:"worker_type"` // prefill, decode or aggregated; older ones do not have it
	Runtime    struct {
		Blocks           int `json:"total_kv_blocks"`
		MaxSeqs          int `json:"max_num_seqs"`
		MaxBatchedTokens int `json:"max_num_batched_tokens"`
		FirstRank        int `json:"data_parallel_start_rank"`
		Ranks            int `json:"data_parallel_size"`
	} `json:"runtime_config"`
}

// readDynamo reads the value of a key. Instances that serve no model, such as those that
// only answer what blocks a worker has, are keys like all others.
func readDynamo(key string, value []byte) (k dynamoKey, err error) {
	path, card := strings.CutPrefix(key, cardKeys)
	path = strings.TrimPrefix(path, instanceKeys)
	parts := strings.Split(path, "/")
	if len(parts) < 4 || !card && len(parts) > 4 {
		return k, errors.New("the key is not as Dynamo 1.x has them: NAMESPACE/COMPONENT/ENDPOINT/ID")
	}
	var said struct {
		Type string      `json:"type"`
		ID   uint64      `json:"instance_id"`
		Card *dynamoCard `json:"card_json"`
	}
	if err := json.Unmarshal(value, &said); err != nil {
		return k, fmt.Errorf("the value is not as Dynamo 1.x has them: %w", err)
	}
	id, err := strconv.ParseUint(parts[3], 16, 64)
	switch want := map[bool]string{false: "Endpoint", true: "Model"}[card]; {
	case said.Type != want:
		return k, fmt.Errorf("the value must be of type %s, is %q", want, short(said.Type))
	case err != nil || id != said.ID:
		return k, errors.New("the value is another instance's than the key")
	case card && said.Card == nil:
		return k, errors.New("the value has no card of a model")
	}
	k = dynamoKey{instance: strings.Join(parts[1:4], "/"), id: id}
	if card {
		k.model = said.Card
	}
	return k, nil
}

// dynamoMade are the workers that were made of instances, by instance: a card that is what it was makes the
// same worker. To make one takes a tenth of a millisecond.
type dynamoMade map[string]*madeWorker

type madeWorker struct {
	cards  []*dynamoCard // as they were read; another reading of one is another pointer
	worker upstream.Settings
	err    error
}

// workers are the instances that serve a model, each with all of its models.
func (m dynamoMade) workers(e *Entry, source string, keys *keyTable[dynamoKey]) (r report) {
	there := map[string]bool{}
	cards := map[string][]*dynamoCard{}
	var served []*dynamoKey
	r.bad = keys.all(func(_ string, k *dynamoKey) {
		if k.model == nil {
			there[k.instance] = true
			return
		}
		if cards[k.instance] == nil {
			served = append(served, k)
		}
		cards[k.instance] = append(cards[k.instance], k.model)
	})
	m.prune(cards)
	for _, k := range served {
		if !there[k.instance] {
			continue // it is about to go, or to come
		}
		w := m.make(e, k, cards[k.instance])
		if w.err != nil {
			r.bad = errors.Join(r.bad, fmt.Errorf("%s: %w", k.instance, w.err))
			continue
		}
		r.workers = append(r.workers, Worker{Settings: w.worker, From: source})
	}
	return r
}

func (m dynamoMade) make(e *Entry, k *dynamoKey, cards []*dynamoCard) *madeWorker {
	w := m[k.instance]
	if w == nil || !slices.Equal(w.cards, cards) {
		w = &madeWorker{cards: cards}
		w.worker, w.err = dynamoWorker(e, k, cards)
		m[k.instance] = w
	}
	return w
}

// prune forgets instances that are gone, where there are many: they may come again.
func (m dynamoMade) prune(there map[string][]*dynamoCard) {
	if len(m) <= len(there)+mostGone {
		return
	}
	for instance := range m {
		if there[instance] == nil {
			delete(m, instance)
		}
	}
}

// dynamoWorker is one worker, as it is asked behind the frontend. Its description goes the
// way of any stranger's.
func dynamoWorker(e *Entry, k *dynamoKey, cards []*dynamoCard) (w upstream.Settings, err error) {
	component, _, _ := strings.Cut(k.instance, "/")
	var models []string
	for _, c := range cards {
		if !slices.Contains(models, c.Name) {
			models = append(models, c.Name)
		}
	}
	value, err := json.Marshal(map[string]any{
		"url": e.Frontend, "engine": "dynamo", "models": models, "role": dynamoRole(component, cards[0]),
		"name": fmt.Sprintf("%s-%x", component, k.id), "instance": strconv.FormatUint(k.id, 10),
	})
	if err != nil {
		return w, err
	}
	if w, err = e.ReadWorker(value); err != nil {
		return w, err
	}
	w.Facts = cards[0].facts()
	return w, nil
}

func dynamoRole(component string, c *dynamoCard) string {
	switch {
	case c.WorkerType == "prefill", c.WorkerType == "" && (component == "prefill" || strings.Contains(c.ModelType, "Prefill")):
		return "prefill"
	case c.WorkerType == "decode":
		return "decode"
	}
	return "both"
}

// facts are what the card says of the engine. A worker that has only some of an engine's
// ranks is not asked for one by its number.
func (c *dynamoCard) facts() (f kvroute.EngineFacts) {
	bounded := func(n, most int) int {
		if n < 0 || n > most {
			return 0
		}
		return n
	}
	f.BlockSize = bounded(c.BlockSize, 1<<16)
	f.Blocks = bounded(c.Runtime.Blocks, math.MaxInt32)
	f.MaxSeqs = bounded(c.Runtime.MaxSeqs, 1<<20)
	f.MaxBatchedTokens = bounded(c.Runtime.MaxBatchedTokens, math.MaxInt32)
	if c.Runtime.FirstRank == 0 {
		f.Ranks = bounded(c.Runtime.Ranks, 1024)
	}
	return f
}

// dynamoFiles are the directory of the file backend: one directory for instances and one for
// cards, in each a file for a key.
type dynamoFiles struct {
	entry Entry
	keys  *keyTable[dynamoKey]
	made  dynamoMade
	read  map[string]stamp // of the files, by key, as they were read
}

// A stamp tells whether a file may have other content than before.
type stamp struct {
	changed time.Time
	size    int64
	looked  time.Time
}

// settled is how old a change must be for another one to have another time: file systems count in steps of some ms.
const settled = 100 * time.Millisecond

func (s stamp) same(o stamp) bool {
	return s.changed.Equal(o.changed) && s.size == o.size && s.looked.Sub(s.changed) > settled
}

func runDynamoFiles(src *source) {
	f := &dynamoFiles{keys: newKeyTable(readDynamo), made: dynamoMade{}, read: map[string]stamp{}}
	watchFiles(src, &looks{
		anew: f.keys.anew,
		around: func(e *Entry) []string {
			f.entry = *e
			return []string{e.Path, filepath.Join(e.Path, "v1"), filepath.Join(e.Path, instanceKeys), filepath.Join(e.Path, cardKeys)}
		},
		look: func(now time.Time) (report, time.Duration) {
			err := f.look(now)
			r := f.made.workers(&f.entry, src.called(), f.keys)
			return r.doubted(err), 0
		},
	})
}

// look reads the files of the namespace that somebody stands behind, as far as they may have changed.
func (f *dynamoFiles) look(now time.Time) error {
	if _, err := os.Stat(f.entry.Path); err != nil {
		return fmt.Errorf("cannot look at %s: %w", f.entry.Path, bare(err))
	}
	there := map[string]bool{}
	for _, bucket := range []string{instanceKeys, cardKeys} {
		dir := filepath.Join(f.entry.Path, bucket)
		files, err := os.ReadDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue // nobody has registered yet
		}
		if err != nil {
			return fmt.Errorf("cannot look at %s: %w", dir, bare(err))
		}
		if len(files) > maxDynamoKeys {
			return fmt.Errorf("%s has %d files, more than %d", dir, len(files), maxDynamoKeys)
		}
		for _, file := range files {
			name, err := url.PathUnescape(file.Name())
			if err != nil || !strings.HasPrefix(name, f.entry.dynamoNamespace()+"/") {
				continue // another namespace's, or one that is being written
			}
			info, err := file.Info()
			if err != nil || now.Sub(info.ModTime()) > fileTTL {
				continue
			}
			if f.take(bucket+name, filepath.Join(dir, file.Name()), stamp{info.ModTime(), info.Size(), now}) {
				there[bucket+name] = true
			}
		}
	}
	f.keys.only(there)
	for key := range f.read {
		if !there[key] {
			delete(f.read, key)
		}
	}
	return nil
}

// take reads the file of a key, if it may have changed, and says whether it is there.
func (f *dynamoFiles) take(key, path string, now stamp) bool {
	if f.read[key].same(now) {
		return true
	}
	f.read[key] = now
	data, err := filewatch.Read(path, etcd.MaxValue+1)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false
	case err != nil:
		f.keys.spoil(key, 0, bare(err))
		delete(f.read, key) // whoever may not read it now may later
	case len(data) > etcd.MaxValue:
		f.keys.spoil(key, 0, fmt.Errorf("the file has more than %d KiB", etcd.MaxValue>>10))
	default:
		f.keys.put(key, data, 0)
	}
	return true
}
