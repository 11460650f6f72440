// Isolation: salts that keep the KV blocks of tenants apart.

package proxy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strings"

	"kvasir/openai"
)

// reservedSalt begins every salt of ours. A client's own salt that begins so is replaced: otherwise
// whoever guessed a tenant's salt could find out by timing what the tenant asks.
const reservedSalt = "kvasir-"

// salt settles the cache_salt that the prompt is computed under: one of the
// tenant's own for a key that is isolated, else the client's. The tenant's is made
// of its keys, not of its name: SGLang joins cache_salt and extra_key, so a salt
// that can be guessed can be sent in pieces that do not show it.
func (x placer) salt() {
	p := &x.placing
	if !x.route.Generates() {
		return
	}
	asked := ""
	isolated := x.key != nil && x.key.Isolate
	if at := x.req.Fields.CacheSalt; at.Given() {
		if json.Unmarshal(at.Of(x.body), &p.salt) != nil { // into what is on the heap already
			p.salt = ""
			if !isolated {
				return // the engine will say what it makes of it
			}
			asked = string(at.Of(x.body))
		} else {
			asked = p.salt
		}
	}
	switch {
	case isolated:
		secret := x.state.keys.secrets[x.key.owner()]
		p.salt = reservedSalt + hashed("tenant", string(secret[:]), asked)
	case strings.HasPrefix(asked, reservedSalt) || likeImage(asked):
		p.salt = "client-" + hashed("client", asked)
	}
	p.ownSalt = p.salt != asked
}

// likeImage says whether a salt looks like the hash of an image. Engines' events do not tell the
// two apart, so no prompt would meet its own blocks. A client that hashes its salts with SHA-256
// gets other salts in their place.
func likeImage(salt string) bool {
	_, err := hex.DecodeString(salt)
	return len(salt) == 64 && err == nil
}

// hashed is 32 hex digits over the parts. Never 64: engines' events cannot tell
// those from the hash of an image.
func hashed(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// spliceSalt puts our salt into the body, where the worker takes salts.
func (x placer) spliceSalt() {
	if p := &x.placing; p.ownSalt && !p.saltless {
		openai.SetCacheSalt(&x.edit, &x.req, p.salt)
	}
}

// saltFor makes the body fit for this worker: engines differ in whether they take
// a salt.
func (x placer) saltFor(b *backend) {
	p := &x.placing
	if p.ownSalt && p.saltless == b.TakesSalt() {
		p.saltless = !p.saltless
		x.splice()
	}
}
