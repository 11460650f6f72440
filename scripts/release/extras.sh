#!/bin/sh
# What is installed beside the binary, made by the binary itself:
#
#   scripts/release/extras.sh KVASIR DIR
#
#   DIR/man/man1/kvasir.1, kvasir-serve.1, ...
#   DIR/completions/kvasir.bash, _kvasir (zsh), kvasir.fish
set -eu
kvasir=${1:?usage: extras.sh KVASIR DIR} to=${2:?usage: extras.sh KVASIR DIR}
rm -rf "$to/man" "$to/completions"
mkdir -p "$to/man/man1" "$to/completions"
"$kvasir" help --man-pages "$to/man/man1"
"$kvasir" completion bash > "$to/completions/kvasir.bash"
"$kvasir" completion zsh > "$to/completions/_kvasir"
"$kvasir" completion fish > "$to/completions/kvasir.fish"
