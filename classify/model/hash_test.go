// The version of embeddings.

package model

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// EncoderHash changes with the weights, so that no store takes vectors of others for its own.
func TestEncoderHash(t *testing.T) {
	h := sha256.New()
	h.Write(bytesOf(tokensFile))
	h.Write(bytesOf(encoderFile))
	if want := hex.EncodeToString(h.Sum(nil))[:len(EncoderHash)]; EncoderHash != want {
		t.Errorf("EncoderHash is %q, the weights' is %q", EncoderHash, want)
	}
}
