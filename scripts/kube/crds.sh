#!/usr/bin/env bash
# Brings the true CRDs that the chart's optional parts need to .cache/kube/crds: of the Prometheus operator and of
# KEDA, out of their Go modules, which have the files beside the code.
set -euo pipefail
dir=${KUBE_DIR:-.cache/kube}/crds
mkdir -p "$dir"

take() { # MODULE@VERSION SUM FILE...
  local module=$1 sum=$2
  shift 2
  cmp -s <(echo "$sum") "$dir/${module##*/}.sum" && return
  local said at
  said=$(cd / && go mod download -json "$module") # of no module of ours
  at=$(sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p' <<< "$said")
  grep -qF "\"Sum\": \"$sum\"" <<< "$said" || { echo "kube: $module has another checksum than $sum" >&2; exit 1; }
  for file; do cp --no-preserve=mode "$at/$file" "$dir/"; done
  echo "$sum" > "$dir/${module##*/}.sum"
}

take github.com/prometheus-operator/prometheus-operator@v0.85.0 h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s= \
  example/prometheus-operator-crd/monitoring.coreos.com_{servicemonitors,prometheusrules}.yaml
take github.com/kedacore/keda/v2@v2.20.2 h1:SR60v8uIcelbveS8n/1jcl8tLdBBIbHMxmdOHw8tKqA= \
  config/crd/bases/keda.sh_scaledobjects.yaml
