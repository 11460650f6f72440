// Cryptocurrency addresses, all with a checksum: base58check, bech32 and bech32m, and EIP-55.

package pii

import (
	"crypto/sha256"
	"hash"
	"io"
	"sync"

	"golang.org/x/crypto/sha3"
)

// crypto finds an address in a token.
func crypto(s *scan, c *code) match {
	if c.solidEnd != c.end && c.n != c.solid || !ends(s.text, c.end) {
		return match{}
	}
	m := match{start: c.start, end: c.end}
	token := c.buf[:c.n]
	switch {
	case c.n == 42 && token[0] == '0' && token[1]|0x20 == 'x' && c.end-c.start == 42:
		if !allHex(token[2:]) {
			return match{}
		}
		m.bad = !eip55(token[2:])
		return m
	case c.n >= 26 && c.n <= 35 && c.end-c.start == c.n && base58check(token):
		return m
	}
	return match{}
}

func allHex(d []byte) bool {
	for _, c := range d {
		if !isHex(c) {
			return false
		}
	}
	return true
}

// base58 are the values of the letters and digits; 0xFF is none.
var base58 = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xFF
	}
	const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	for i := range len(alphabet) {
		t[alphabet[i]] = byte(i)
	}
	return t
}()

// base58check reports whether the token is 25 bytes in base 58: a version that a well-known chain
// uses, a hash, and the first four bytes of the double SHA-256 of both (Bitcoin's developer
// reference).
func base58check(token []byte) bool {
	var raw [25]byte
	ones, leading := 0, true
	for _, c := range token {
		v := int(base58[c])
		if v == 0xFF {
			return false
		}
		if leading = leading && c == '1'; leading {
			ones++
		}
		for i := len(raw) - 1; i >= 0; i-- {
			v += int(raw[i]) * 58
			raw[i] = byte(v)
			v >>= 8
		}
		if v != 0 {
			return false
		}
	}
	zeros := 0
	for zeros < len(raw) && raw[zeros] == 0 {
		zeros++
	}
	switch raw[0] {
	case 0x00, 0x05, 0x30, 0x32, 0x1E, 0x16, 0x41, 0x4C, 0x6F, 0xC4: // Bitcoin, Litecoin, Dogecoin, Tron, Dash, testnet
	default:
		return false
	}
	if zeros != ones {
		return false
	}
	once := sha256.Sum256(raw[:21])
	twice := sha256.Sum256(once[:])
	return [4]byte(twice[:4]) == [4]byte(raw[21:])
}

// bech32 are the values of the characters of BIP 173; 0xFF is none.
var bech32 = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xFF
	}
	const alphabet = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
	for i := range len(alphabet) {
		t[alphabet[i]] = byte(i)
	}
	return t
}()

// bech32Prefixes are the human-readable parts that are looked for.
var bech32Prefixes = [...]string{"bc", "tb", "ltc"}

// segwit finds a segregated-witness address at the word at i, which is one of the prefixes (BIP
// 173 and 350). It returns where the pass continues; i: none.
func segwit(s *scan, i int) int {
	for _, prefix := range bech32Prefixes {
		n := len(prefix)
		if i+n+1 >= len(s.text) || !equalFold(s.text[i:i+n], prefix) || s.text[i+n] != '1' {
			continue
		}
		end := i + n + 1
		upper, lowered := false, false
		sum := uint32(1)
		for k := range n {
			sum = bech32Step(sum) ^ uint32(prefix[k]>>5)
		}
		sum = bech32Step(sum)
		for k := range n {
			sum = bech32Step(sum) ^ uint32(prefix[k]&31)
		}
		for ; end < len(s.text) && end-i < 91; end++ {
			v := bech32[lower(s.text[end])]
			if v == 0xFF {
				break
			}
			upper, lowered = upper || isUpper(s.text[end]), lowered || isLower(s.text[end])
			sum = bech32Step(sum) ^ uint32(v)
		}
		s.work += end - i
		if end-i < n+1+38 || !ends(s.text, end) || !begins(s.text, i) {
			return i
		}
		if (sum == 1 || sum == 0x2bc830a3) && !(upper && lowered) {
			s.emit(Crypto, match{start: i, end: end})
		}
		return end
	}
	return i
}

// bech32Step multiplies the checksum by x in the field of BIP 173.
func bech32Step(sum uint32) uint32 {
	top := sum >> 25
	sum = sum & 0x1FFFFFF << 5
	for i, g := range [...]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
		if top>>i&1 == 1 {
			sum ^= g
		}
	}
	return sum
}

// eip55 reports whether forty hexadecimal digits are in one case, or in the mixed case that the
// hash of the lower-cased address gives (EIP-55).
func eip55(address []byte) bool {
	var lowered [40]byte
	upper, small := false, false
	for i, c := range address {
		upper, small = upper || isUpper(c), small || isLower(c)
		lowered[i] = lower(c)
	}
	if !upper || !small {
		return !same(address)
	}
	k := keccaks.Get().(*keccak)
	defer keccaks.Put(k)
	digest := k.of(&lowered)
	for i, c := range address {
		nibble := digest[i/2] >> 4
		if i%2 == 1 {
			nibble = digest[i/2] & 15
		}
		if isLetter(c) && isUpper(c) != (nibble >= 8) {
			return false
		}
	}
	return true
}

// A keccak hashes as Ethereum does: Keccak-256 with the padding from before FIPS 202; the
// standard library's SHA-3 uses another padding.
type keccak struct {
	state   sponge
	message [40]byte
	digest  [32]byte
}

// A sponge is a hash that can also be read: that gives the result of Sum without copying the
// state.
type sponge interface {
	hash.Hash
	io.Reader
}

// keccaks are kept, so that a text with many addresses allocates nothing.
var keccaks = sync.Pool{New: func() any {
	k := new(keccak)
	k.state = sha3.NewLegacyKeccak256().(sponge)
	return k
}}

// of returns the hash of an address, valid until the next call.
func (k *keccak) of(address *[40]byte) *[32]byte {
	k.message = *address
	k.state.Reset()
	k.state.Write(k.message[:])
	k.state.Read(k.digest[:])
	return &k.digest
}
