// Addresses of Ethereum: the examples of EIP-55, and each with one letter in the other case.

package pii

import (
	"strings"
	"testing"
)

func TestEIP55(t *testing.T) {
	for _, address := range []string{
		"52908400098527886E0F7030069857D2E4169EE7", "8617E340B3D01FA5F11F306F4090FD50E238070D",
		"de709f2102306220921060314715629080e2fb77", "27b1fdb04752bbc536007a920d24acb045561c26",
		"5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "fB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		"dbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "D1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
	} {
		if !eip55([]byte(address)) {
			t.Errorf("%s is refused", address)
		}
		if strings.ToUpper(address) == address || strings.ToLower(address) == address {
			continue
		}
		for i := range address {
			wrong := []byte(address)
			if wrong[i] < 'A' {
				continue
			}
			wrong[i] ^= 0x20
			if eip55(wrong) {
				t.Errorf("%s passes", wrong)
			}
		}
	}
}

func TestEIP55Allocates(t *testing.T) {
	if raceEnabled {
		t.Skip("pools forget at random under the race detector")
	}
	address := []byte("5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")
	if n := testing.AllocsPerRun(100, func() { eip55(address) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
