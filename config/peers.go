// Peers: what no single key shows of how replicas know of each other, and the files that are named there.

package config

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"kvasir/wording"
)

// PeersSecrets are what the files hold that peers names.
type PeersSecrets struct {
	Token string      // "": none
	Creds []byte      // nil: none
	Seed  []byte      // of an nkey; nil: none
	TLS   *tls.Config // nil: none is asked for
}

func (b *loader) peers() (s PeersSecrets) {
	p := &b.config.Peers
	if !p.On() {
		return s
	}
	read := func(key string, file Path) string {
		if file == "" {
			return ""
		}
		secret, err := b.secret(file)
		if err != nil {
			b.add("peers."+key, err)
		}
		return secret
	}
	s.Token = read("token_file", p.TokenFile)
	if seed := read("nkey_file", p.NkeyFile); seed != "" {
		s.Seed = []byte(seed)
	}
	if p.CredsFile != "" {
		creds, err := b.readBytes(p.CredsFile, maxSecretFile)
		if err != nil {
			b.add("peers.creds_file", fmt.Errorf("cannot read the file: %w", err))
		}
		s.Creds = creds
	}
	s.TLS, _ = b.peerTLS("peers.tls", p.TLS)
	return s
}

// peers finds what is wrong with how replicas know of each other.
func (v *validation) peers(p *Peers) {
	embed := p.Embed.Listen != ""
	if !p.On() {
		if p.TokenFile != "" || p.CredsFile != "" || p.NkeyFile != "" || p.TLS != (PeerTLS{}) || len(p.Embed.Routes) > 0 || p.Name != "" {
			v.add("there is no NATS to ask: set peers.servers, or peers.embed.listen", "peers")
		}
		return
	}
	if embed && len(p.Servers) > 0 {
		v.add("is set together with peers.embed; set only one of the two", "peers.servers")
	}
	v.natsURLs("peers.servers", p.Servers)
	v.natsURLs("peers.embed.routes", p.Embed.Routes)
	if p.Group == "" || strings.Trim(p.Group, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || len(p.Group) > 64 {
		v.add("must have letters, digits, _ and - alone, and at most 64 of them", "peers.group")
	}
	if len(p.Name) > 64 {
		v.add("is longer than 64 bytes", "peers.name")
	}
	if n := countSet(p.TokenFile, p.CredsFile, p.NkeyFile); n > 1 {
		v.add("has more than one of token_file, creds_file and nkey_file; NATS takes one", "peers")
	}
	v.pair("peers.tls", p.TLS.Cert, p.TLS.Key)
	if p.TLS.Insecure && p.TLS.CA != "" {
		v.add("turns off the check that tls.ca is for; set only one of the two", "peers.tls.insecure")
	}
	if embed {
		v.embed(p)
	}
}

// embed finds what is wrong with the NATS server inside.
func (v *validation) embed(p *Peers) {
	if _, port, err := net.SplitHostPort(p.Embed.Listen); err != nil || port == "" {
		v.add("must be host:port, such as 0.0.0.0:6222", "peers.embed.listen")
		return
	}
	if p.CredsFile != "" || p.NkeyFile != "" {
		v.add("names a creds_file or nkey_file, which are for servers of your own; the one inside takes a token_file", "peers")
	}
	if p.TokenFile == "" && !IsLoopback(p.Embed.Listen) {
		v.add("can be used by everybody who reaches "+wording.Quote(p.Embed.Listen)+"; set peers.token_file, the same at all replicas", "peers.embed.listen")
	}
	if p.TLS != (PeerTLS{}) && (p.TLS.Cert == "" || p.TLS.CA == "") {
		v.add("of the server inside takes cert, key and ca, which all replicas show to each other", "peers.tls")
	}
}

// natsURLs wants nats:// or tls:// and a host, without credentials.
func (v *validation) natsURLs(path string, urls []string) {
	seen := map[string]string{}
	for i, raw := range urls {
		at := fmt.Sprintf("%s[%d]", path, i)
		u, err := url.Parse(raw)
		switch {
		case err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls"}, u.Scheme):
			v.add("must be the URL of a NATS server, such as nats://10.0.0.9:4222", at)
		case u.User != nil:
			v.add("has a user or a token in it; put that into peers.token_file or peers.creds_file", at)
		case strings.Contains(raw, ","):
			v.add("is more than one server; give each its own entry", at)
		default:
			v.once(seen, raw, at, "is there twice")
		}
	}
}

func countSet(files ...Path) (n int) {
	for _, f := range files {
		if f != "" {
			n++
		}
	}
	return n
}
