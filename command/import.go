// `kvasir import`: another program's configuration becomes ours.

package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kvasir/config/convert"
	"kvasir/wording"
)

// mostImported is how much of a file is read: more than any configuration has, so that what is too
// large is told.
const mostImported = 2 << 20

func importCommand() *cobra.Command {
	var from, output string
	var strict bool
	cmd := &cobra.Command{
		Use:   "import --from PROGRAM FILE",
		Short: "Make a configuration of another program's",
		Long: `Makes a configuration of Kvasir of one of vLLM Semantic Router (vllm-sr) or of
LiteLLM's proxy (litellm), and writes it to stdout. What has no counterpart is
listed on stderr, each with its line, what it is, and what to do. Keys and
passwords are not copied: the result takes them from the environment.
docs/migrate.md says what becomes of what.`,
		Example: `  kvasir import --from vllm-sr config.yaml > kvasir.yaml
  kvasir import --from litellm litellm.yaml --output kvasir.yaml --strict
  kvasir check --config kvasir.yaml --live`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("name one file, or - for stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if from == "" {
				return usageError("--from: is missing; name the program that the file is of, " + wording.List(convert.Sources(), "or"))
			}
			r, err := convertFile(from, args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			name := args[0]
			for _, n := range r.Notes {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s:%d: %s\n", name, n.Line, strings.TrimPrefix(n.What+": "+n.Text, ": "))
			}
			if strict && len(r.Notes) > 0 {
				return errors.New(wording.Count(len(r.Notes), "note") + " above, and --strict takes none; nothing was written")
			}
			if err := writeResult(cmd.OutOrStdout(), output, r.Text); err != nil {
				return err
			}
			if r.Problem != nil {
				return fmt.Errorf("the result needs a change before kvasir check takes it:\n%w", r.Problem)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the `program` that the file is of: "+wording.List(convert.Sources(), "or"))
	cmd.Flags().StringVar(&output, "output", "", "write to this `file`, which must not be there yet, instead of stdout")
	cmd.Flags().BoolVar(&strict, "strict", false, "fail if anything has no counterpart")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(convert.Sources(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// convertFile reads a file, or stdin for -, and converts it. A file of another form is wrong usage.
func convertFile(from, name string, stdin io.Reader) (*convert.Result, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usageError("cannot read the file: " + err.Error())
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, mostImported))
	if err != nil {
		return nil, usageError("cannot read the file: " + err.Error())
	}
	r, err := convert.Convert(from, name, data)
	if err != nil {
		return nil, usageError("cannot import: " + err.Error())
	}
	return r, nil
}

// writeResult writes to a file that is not there yet, which only its owner may read, or to out.
func writeResult(out io.Writer, name string, text []byte) error {
	if name == "" {
		_, err := out.Write(text)
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	_, err = f.Write(text)
	if errClose := f.Close(); err == nil {
		err = errClose
	}
	if err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return nil
}
