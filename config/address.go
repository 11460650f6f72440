// Addresses: where to listen and whom to ask, and what is often wrong with them.

package config

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"kvasir/wording"
	"kvasir/zmtp"
)

// CheckListen wants host:port, :port or unix:/path.
func CheckListen(addr string) error {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		// The kernel's sun_path has 108 bytes with its end, on some systems 104.
		if !strings.HasPrefix(path, "/") || len(path) > 103 {
			return fmt.Errorf("%s must name an absolute path of at most 103 bytes after the word unix", wording.Quote(addr))
		}
		return nil
	}
	if _, rest, ok := strings.Cut(addr, "://"); ok {
		return fmt.Errorf("%s is a URL, not an address, did you mean %q?", wording.Quote(addr), strings.TrimRight(rest, "/"))
	}
	if strings.HasPrefix(addr, "/") {
		return fmt.Errorf("%s is a path, did you mean %q?", wording.Quote(addr), "unix:"+addr)
	}
	if isDigits(addr) {
		return fmt.Errorf("%s has no host, did you mean %q?", wording.Quote(addr), "127.0.0.1:"+addr)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		if net.ParseIP(addr) != nil || !strings.Contains(addr, ":") {
			return fmt.Errorf("%s has no port, did you mean %q?", wording.Quote(addr), net.JoinHostPort(addr, "8080"))
		}
		return fmt.Errorf("%s is no address such as 127.0.0.1:8080 or unix:/run/kvasir.sock", wording.Quote(addr))
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%s: the port must be a number up to 65535", wording.Quote(addr))
	}
	if strings.ContainsAny(host, " /@?#*") {
		return fmt.Errorf("%s: %s is no host", wording.Quote(addr), wording.Quote(host))
	}
	return nil
}

// checkZMQ wants an address that a ZeroMQ subscriber can connect to.
func checkZMQ(address string) error {
	if _, _, err := zmtp.Split(address); err == nil {
		return nil
	}
	for _, mended := range []string{"tcp://" + address, strings.Replace(address, "*", "127.0.0.1", 1)} {
		if _, _, err := zmtp.Split(mended); err == nil {
			return fmt.Errorf("%s is no address such as tcp://10.0.0.5:5557, did you mean %q?", wording.Quote(address), mended)
		}
	}
	return fmt.Errorf("%s is no address such as tcp://10.0.0.5:5557 or ipc:///run/kv.sock", wording.Quote(address))
}

// sameListen says whether two good addresses cannot both be listened on.
func sameListen(a, b string) bool {
	if a == b && !strings.HasSuffix(a, ":0") {
		return true
	}
	if strings.HasPrefix(a, "unix:") || strings.HasPrefix(b, "unix:") {
		return false
	}
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return plainHost(hostA) == plainHost(hostB) || IsEverywhere(hostA) || IsEverywhere(hostB)
}

func plainHost(host string) string {
	if strings.EqualFold(host, "localhost") {
		return "127.0.0.1"
	}
	return strings.ToLower(host)
}

// IsEverywhere says whether a host stands for every address of this machine.
func IsEverywhere(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// IsLoopback says whether only this machine can reach a listen address.
func IsLoopback(addr string) bool {
	if strings.HasPrefix(addr, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback())
}

// CheckURL wants a worker's http or https URL, with an optional base path.
func CheckURL(raw string) error {
	if raw == "" {
		return fmt.Errorf("is missing; give the worker's address, such as http://10.0.0.5:8000")
	}
	_, authority, found := strings.Cut(raw, "://")
	if found {
		authority, _, _ = strings.Cut(authority, "/")
	} else {
		authority = raw // no scheme, and perhaps a password all the same
	}
	if strings.Contains(authority, "@") {
		// First, so that no other message quotes the password.
		return fmt.Errorf("must not hold a user or password; send them with headers: {Authorization: ...} or key_file")
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("%s has blanks or control characters", quoteURL(raw))
	}
	u, err := url.Parse(raw)
	if err != nil || !strings.Contains(raw, "://") {
		if _, errPlain := url.Parse("http://" + raw); errPlain == nil && !strings.Contains(raw, "//") && raw[0] != '/' {
			return fmt.Errorf("%s has no scheme, did you mean %s?", quoteURL(raw), quoteURL("http://"+raw))
		}
		return fmt.Errorf("%s is no URL such as http://10.0.0.5:8000", quoteURL(raw))
	}
	return checkURLParts(raw, u)
}

func checkURLParts(raw string, u *url.URL) error {
	port, errPort := strconv.Atoi(u.Port())
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%s: the scheme must be http or https%s", quoteURL(raw), wording.DidYouMean(u.Scheme, []string{"http", "https"}))
	case u.Hostname() == "":
		return fmt.Errorf("%s has no host", quoteURL(raw))
	case u.Port() != "" && (errPort != nil || port < 1 || port > 65535), strings.HasSuffix(u.Host, ":"):
		return fmt.Errorf("%s: the port must be a number from 1 to 65535", quoteURL(raw))
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(raw, "#"):
		return fmt.Errorf("%s must not have a query or fragment after it", quoteURL(raw))
	case u.Path == "/v1" || strings.HasSuffix(u.Path, "/v1"):
		return fmt.Errorf("%s: leave out /v1, the routes begin with it, did you mean %q?", quoteURL(raw), strings.TrimSuffix(raw, "/v1"))
	}
	return nil
}

// quoteURL is quote without the query and fragment, where keys are sent, too.
func quoteURL(raw string) string {
	if i := strings.IndexAny(raw, "?#"); i >= 0 {
		raw = raw[:i]
	}
	return wording.Quote(raw)
}

// checkHost wants the name of a host, as it stands in a Host line before the port.
func checkHost(name string) error {
	if name == "*" {
		return fmt.Errorf("%s would let any web page in; name the hosts", wording.Quote(name))
	}
	bare := name
	if _, rest, ok := strings.Cut(bare, "://"); ok {
		bare = rest
	}
	bare, _, _ = strings.Cut(bare, "/")
	if host, _, err := net.SplitHostPort(bare); err == nil {
		bare = host
	}
	bare = strings.TrimSuffix(bare, ".")
	switch {
	case bare == "" || strings.ContainsAny(bare, " :*@?#[]"):
		return fmt.Errorf("%s is no name of a host such as kvasir.example.com", wording.Quote(name))
	case bare != name:
		return fmt.Errorf("%s is more than the name of a host, did you mean %q?", wording.Quote(name), bare)
	}
	return nil
}

// checkOrigin wants * or scheme://host[:port], as browsers send it.
func checkOrigin(origin string) error {
	if origin == "*" || origin == "null" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return fmt.Errorf("%s is no origin such as https://example.com, nor *", wording.Quote(origin))
	}
	if bare := u.Scheme + "://" + u.Host; bare != origin {
		return fmt.Errorf("%s is more than an origin, did you mean %q?", wording.Quote(origin), bare)
	}
	return nil
}
