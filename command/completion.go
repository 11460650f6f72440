// `kvasir completion`: the completion script of a shell.

package command

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"kvasir/wording"
)

func completionCommand() *cobra.Command {
	shells := map[string]func(*cobra.Command) error{
		"bash": func(root *cobra.Command) error { return root.GenBashCompletionV2(os.Stdout, true) },
		"zsh":  func(root *cobra.Command) error { return root.GenZshCompletion(os.Stdout) },
		"fish": func(root *cobra.Command) error { return root.GenFishCompletion(os.Stdout, true) },
	}
	names := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print the completion script of a shell",
		Example: `  source <(kvasir completion bash)
  kvasir completion zsh > "${fpath[1]}/_kvasir"
  kvasir completion fish > ~/.config/fish/completions/kvasir.fish`,
		ValidArgs: names,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("name one shell: bash, zsh or fish")
			}
			if shells[args[0]] == nil {
				return usageError(fmt.Sprintf("no completion for %s, only for %s%s", wording.Quote(args[0]), wording.List(names, "and"), wording.DidYouMean(args[0], names)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return shells[args[0]](cmd.Root()) },
	}
}
