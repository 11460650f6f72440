// Isolation: salts that keep the KV blocks of tenants apart.

package proxy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"kvasir/openai"
)

// reservedSalt begins every salt of ours. A client's own salt that begins so is replaced: otherwise
// whoever guessed a tenant's salt could find out by timing what the tenant asks.
const reservedSalt = "kvasir-"

// A promptSalt is the cache_salt that a prompt is computed under.
type promptSalt struct {
	text string // "": none
	own  bool   // it is another one than the client's: spliced
	left bool   // but left out for the worker at hand, which takes none
}

// saltOf is the salt of a request: one of the tenant's own for a key that is isolated,
// else the client's; none on a route without prompts. The tenant's is made of its keys, not of its name:
// SGLang joins cache_salt and extra_key, so a salt that can be guessed can be sent in
// pieces that do not show it.
func saltOf(r *openai.Request, route *openai.Route, key *keyState, ring *keyring) (salt promptSalt) {
	if !route.Generates() {
		return promptSalt{}
	}
	asked := ""
	isolated := key != nil && key.Isolate
	if value := r.Fields.CacheSalt.Of(r.Body); len(value) > 0 {
		if value[0] == '"' {
			salt.text = string(openai.AppendUnescaped(nil, value[1:len(value)-1]))
			asked = salt.text
		} else if isolated { // no string: the engine will say what it makes of it
			asked = string(value)
		} else {
			return salt
		}
	}
	switch {
	case isolated:
		secret := ring.secrets[key.owner()]
		salt.text = reservedSalt + hashed("tenant", string(secret[:]), asked)
	case strings.HasPrefix(asked, reservedSalt) || likeImage(asked):
		salt.text = "client-" + hashed("client", asked)
	}
	salt.own = salt.text != asked
	return salt
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

// fitSalt makes the body fit for a worker, which takes salts or not: engines differ.
func (pl *plan) fitSalt(takes bool) {
	if salt := &pl.placing.salt; salt.own && salt.left == takes {
		salt.left = !salt.left
		pl.splice(nil)
	}
}
