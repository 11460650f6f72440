// `kvasir health`: does the Kvasir that serves this configuration answer; for HEALTHCHECK and probes, where
// there is no shell and no curl.

package command

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kvasir/command/listener"
	"kvasir/config"
	"kvasir/wording"
)

// healthWithin bounds the whole question; less than what a HEALTHCHECK waits.
const healthWithin = 3 * time.Second

func healthCommand(p Program) *cobra.Command {
	flags := configFlags{builtIn: p.Config}
	var ready bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask the Kvasir that serves a configuration whether it is well",
		Long: `Asks the Kvasir that serves this configuration for /livez, or with --ready for
/readyz: on server.admin, or on server.listen where the other is off or does not
answer. Prints one line. The exit code is 0 when it is well, and 1 when it is
not or nobody answers.

Give it the configuration that serve has. It only needs the two addresses, so
other mistakes in the file, or files missing beside it, do not matter.`,
		Example: `  kvasir health --config kvasir.yaml
  kvasir health --ready
  docker exec kvasir kvasir health --ready`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.checkSet(); err != nil {
				return err
			}
			layers := flags.layers(cmd)
			server, err := serverOf(layers)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), healthWithin)
			defer cancel()
			what, err := health(ctx, server, layers.Chosen("server.admin"), ready)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), what)
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&ready, "ready", false, "ask whether requests should be sent there, not only whether it is there")
	return cmd
}

// serverOf is the section server of the layers. The file may have gone bad since
// the running Kvasir took it over; that does not make Kvasir ill, so what is
// wrong in it is left out.
func serverOf(l *config.Layers) (*config.Server, error) {
	c, err := l.Usable()
	if err != nil {
		// Without its type: config.Problems would exit with 2, which Docker
		// reserves for itself.
		return nil, errors.New(err.Error())
	}
	return &c.Server, nil
}

// health asks the listener that there is, and gives a line of what it says.
// Where nobody listens at server.admin, server.listen is asked, too: the address
// may have been changed in the file, and the running Kvasir takes it over only
// when it is restarted.
//
// An admin address that nobody chose may be another process's: one that finds it taken serves without,
// so server.listen comes first then.
func health(ctx context.Context, c *config.Server, chosen, ready bool) (string, error) {
	if c.Admin == "" {
		return apiHealth(ctx, c, ready)
	}
	if !chosen {
		if what, err := apiHealth(ctx, c, ready); !listener.IsNobody(err) {
			return what, err
		}
	}
	what, err := listenerAt{key: "server.admin", addr: c.Admin, scheme: "http"}.health(ctx, ready)
	if listener.IsNobody(err) {
		if other, failed := apiHealth(ctx, c, ready); failed == nil {
			return other, nil
		}
	}
	return what, err
}

// apiHealth asks server.listen.
func apiHealth(ctx context.Context, c *config.Server, ready bool) (string, error) {
	at := listenerAt{key: "server.listen", addr: c.Listen, scheme: "http"}
	if c.TLS.Cert != "" {
		at.scheme = "https"
		// The question is whether it answers, not who it is: its
		// certificate may name another host.
		at.tls = &tls.Config{InsecureSkipVerify: true}
	}
	if c.TLS.ClientCA != "" {
		return at.shakeHands(ctx, ready)
	}
	return at.health(ctx, ready)
}

// A listenerAt is a listener of the running Kvasir, as a client sees it.
type listenerAt struct {
	key    string // of the configuration
	addr   string
	scheme string
	tls    *tls.Config // nil: plain HTTP
}

func (l listenerAt) String() string { return l.key + " " + wording.Quote(l.addr) }

func (l listenerAt) health(ctx context.Context, ready bool) (string, error) {
	if ready {
		return l.ready(ctx)
	}
	return l.alive(ctx)
}

func (l listenerAt) alive(ctx context.Context) (string, error) {
	code, said, err := l.get(ctx, "/livez")
	switch {
	case err != nil:
		return "", err
	case code != http.StatusOK || said.Status != "ok":
		return "", fmt.Errorf("what answers at %s is not Kvasir: it says %d for /livez", l, code)
	}
	return "alive at " + l.String(), nil
}

func (l listenerAt) ready(ctx context.Context) (string, error) {
	code, said, err := l.get(ctx, "/readyz")
	if err != nil {
		return "", err
	}
	if said.Status == "" {
		return "", fmt.Errorf("what answers at %s is not Kvasir: it says %d for /readyz", l, code)
	}
	why := said.Reasons
	if len(why) == 0 && said.Problems > 0 {
		why = []string{wording.Count(said.Problems, "problem") + ", which server.admin names"}
	}
	line := strings.Join(append([]string{said.Status}, why...), "; ")
	line = strings.Join(strings.Fields(line), " ") + " at " + l.String()
	if code != http.StatusOK {
		return "", errors.New(line)
	}
	return line, nil
}

// shakeHands is all that can be done at a listener that wants a certificate
// which we do not have. With TLS 1.3 our side of the handshake ends before the
// server asks for it.
func (l listenerAt) shakeHands(ctx context.Context, ready bool) (string, error) {
	if ready {
		return "", fmt.Errorf("cannot ask %s: it wants a certificate of its clients; switch server.admin on", l)
	}
	conn, err := listener.Dial(ctx, l.addr)
	if err != nil {
		return "", l.silent(err)
	}
	defer conn.Close()
	if err := tls.Client(conn, l.tls).HandshakeContext(ctx); err != nil {
		return "", l.silent(err)
	}
	return "alive at " + l.String() + ", by its TLS handshake", nil
}

// A healthSaid is what the health routes answer.
type healthSaid struct {
	Status   string   `json:"status"`
	Reasons  []string `json:"reasons"`
	Problems int      `json:"problems"` // their number, where they are not named
}

// get asks a health route; what is no JSON of one is an empty answer.
func (l listenerAt) get(ctx context.Context, path string) (code int, said healthSaid, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.scheme+"://localhost"+path, nil)
	if err != nil {
		return 0, said, err
	}
	resp, err := listener.Client(l.addr, l.tls).Do(req)
	if err != nil {
		return 0, said, l.silent(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, said, l.silent(err)
	}
	_ = json.Unmarshal(text, &said)
	return resp.StatusCode, said, nil
}

// silent is the error of a listener that does not answer.
func (l listenerAt) silent(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no Kvasir answers at %s within %v", l, healthWithin)
	}
	return fmt.Errorf("no Kvasir answers at %s: %w", l, innermost(err))
}

// innermost is the error without the layers that name the address again.
func innermost(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}
