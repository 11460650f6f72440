// Generation: a checked Config with what the files hold that it names.

package config

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"kvasir/wording"
)

// A Generation is one configuration with everything that was read for it. It
// is never changed; a reload makes the next one.
type Generation struct {
	Config  *Config
	KeySums [][sha256.Size]byte // the SHA-256 of each of Config.Keys, in their order
	Workers []Credentials       // for each of Config.Workers, in their order
	Sources []Credentials       // for each of Config.Discovery, in their order
	Milvus  Credentials         // for cache.milvus, where that is the store
	Peers   PeersSecrets        // of peers
	Admin   *[sha256.Size]byte  // of the key in server.admin_key_file; nil: none is named
	TLS     *tls.Config         // of server.tls, for one handshake; nil: it is off
	KEDA    *tls.Config         // of planner.keda.tls, likewise
	Tracing Traces              // of tracing and the OTEL_* variables

	env func(string) (string, bool) // of the variables of the environment
	at  places
}

// Chosen says whether somebody set the key: a file of theirs, a variable or a flag. What the
// built-in file says, nobody asked for.
func (g *Generation) Chosen(path string) bool {
	at, set := g.at[path]
	return set && at.source != builtInName
}

// Credentials are what Kvasir shows to a peer, and what it checks the peer's
// certificate with.
type Credentials struct {
	Secret  string      // of key_file; "": none is named
	TLS     *tls.Config // nil: none is asked for
	TLSName string      // the same exactly when the settings and the content of their files are; "": no TLS

	Password string // of password_file; "": none is named
}

// Load reads all layers and all files they name. It says what it read, also
// when that cannot be used; the error is of type Problems.
func (l *Layers) Load() (*Generation, Contents, error) {
	data, read, err := l.bytes()
	if err != nil {
		return nil, read, err
	}
	put := expansions{}
	cfg, at, bad := l.mergeInto(put, data)
	b := &loader{config: cfg, dir: filepath.Dir(l.File), files: read, readFile: ReadBounded}
	g := &Generation{Config: cfg, KeySums: b.keys(), Workers: b.workers(), Sources: b.sources(), env: l.lookup, at: at}
	b.tokenizers()
	g.TLS, g.KEDA = b.listenerTLS("server.tls", b.config.Server.TLS, "http/1.1"), b.listenerTLS("planner.keda.tls", b.config.Planner.KEDA.TLS, "h2")
	g.Milvus, g.Peers, g.Admin = b.milvus(), b.peers(), b.adminKey()
	g.Tracing = b.tracing(l.lookup)
	if bad = bad.with(b.found, at); len(bad) > 0 {
		return nil, read, bad.hide(put)
	}
	return g, read, nil
}

// Usable gives what is good in all layers: what is wrong is left out, and no file
// that the configuration names is read. There is an error, of type Problems, only
// where the configuration file itself cannot be read.
func (l *Layers) Usable() (*Config, error) {
	data, _, err := l.bytes()
	if err != nil {
		return nil, err
	}
	c, _, _ := l.merge(data)
	return c, nil
}

// Chosen says of a key of the layers what it says of one of a Generation.
func (l *Layers) Chosen(path string) bool {
	data, _, err := l.bytes()
	if err != nil {
		return false
	}
	_, at, _ := l.merge(data)
	return (&Generation{at: at}).Chosen(path)
}

// A loader reads the files that a Config names and notes those it cannot use.
type loader struct {
	config *Config
	dir    string   // of the configuration file
	files  Contents // what was read
	found  []conflict

	readFile func(path string) ([]byte, error) // reads MaxRead bytes of a file
}

func (b *loader) add(path string, err error) {
	b.found = append(b.found, conflict{paths: []string{path}, text: err.Error()})
}

// keys are the SHA-256 of all keys, that of a bad one zero.
func (b *loader) keys() [][sha256.Size]byte {
	sums := make([][sha256.Size]byte, len(b.config.Keys))
	seen := map[[sha256.Size]byte]string{}
	for i, k := range b.config.Keys {
		path := fmt.Sprintf("keys[%d].sha256", i)
		if k.KeyFile != "" {
			path = fmt.Sprintf("keys[%d].key_file", i)
			secret, err := b.secret(k.KeyFile)
			if err != nil {
				b.add(path, err)
				continue
			}
			sums[i] = sha256.Sum256([]byte(secret))
		} else if sum, err := hex.DecodeString(k.SHA256); err != nil || copy(sums[i][:], sum) != len(sums[i]) {
			continue // validate says so
		}
		if first, ok := seen[sums[i]]; ok {
			b.found = append(b.found, conflict{paths: []string{path}, text: "is the key of another entry", first: first})
		}
		seen[sums[i]] = path
	}
	return sums
}

// adminKey is the SHA-256 of the admin listener's key; nil: it has none, or a bad one, which is a
// problem of the configuration.
func (b *loader) adminKey() *[sha256.Size]byte {
	file := b.config.Server.AdminKey
	if file == "" {
		return nil
	}
	secret, err := b.secret(file)
	if err != nil {
		b.add("server.admin_key_file", err)
		return nil
	}
	sum := sha256.Sum256([]byte(secret))
	return &sum
}

func (b *loader) workers() []Credentials {
	all := make([]Credentials, len(b.config.Workers))
	for i, w := range b.config.Workers {
		path := fmt.Sprintf("workers[%d]", i)
		all[i] = b.credentials(path, w.KeyFile, w.TLS)
	}
	return all
}

func (b *loader) sources() []Credentials {
	all := make([]Credentials, len(b.config.Discovery))
	for i, d := range b.config.Discovery {
		path := fmt.Sprintf("discovery[%d]", i)
		all[i] = b.credentials(path, d.KeyFile, d.TLS)
		if d.PasswordFile == "" {
			continue
		}
		var err error
		if all[i].Password, err = b.secret(d.PasswordFile); err != nil {
			b.add(path+".password_file", err)
		}
	}
	return all
}

func (b *loader) milvus() Credentials {
	c := &b.config.Cache
	if c.Store != "milvus" {
		return Credentials{}
	}
	return b.credentials("cache.milvus", c.Milvus.KeyFile, c.Milvus.TLS)
}

// credentials are those of the peer at a path of the configuration.
func (b *loader) credentials(path string, keyFile Path, tls PeerTLS) (c Credentials) {
	if keyFile != "" {
		var err error
		if c.Secret, err = b.secret(keyFile); err != nil {
			b.add(path+".key_file", err)
		}
	}
	c.TLS, c.TLSName = b.peerTLS(path+".tls", tls)
	return c
}

// tokenizers checks that a tokenizer's directory has one. What is wrong inside
// it is told when it is read, and placement does without it: requests go on.
func (b *loader) tokenizers() {
	key := Find("models").Elem.child("tokenizer")
	for i, m := range b.config.Models {
		dir := string(m.Tokenizer)
		if slices.Contains(key.words, dir) {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err != nil {
			b.add(fmt.Sprintf("models[%d].tokenizer", i), fmt.Errorf("%s is no directory with a tokenizer.json%s", wording.Quote(dir), wording.DidYouMean(filepath.Base(dir), key.words)))
		}
	}
}
