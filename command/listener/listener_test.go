// Tests of what is said where an address cannot be listened on.

package listener

import (
	"strings"
	"testing"
)

func TestTakenAddress(t *testing.T) {
	t.Parallel()
	first, err := Open("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	addr := first.Addr().String()
	_, err = Open(addr)
	if err == nil || !strings.HasPrefix(err.Error(), `cannot listen on "`+addr+`": `) || !strings.HasSuffix(err.Error(), "; another process has it: stop that one, or choose another address") {
		t.Errorf("error is %v", err)
	}
}
