{{/* What several templates need: names, images, the configuration, and workers with their defaults. */}}

{{/*
The name of what there is one of, and what the others' names begin with. A Service's has letters, digits and "-", and
begins with a letter, while a release may be called 1.prod; one that is cut off ends in a hash of all of it, so that
releases that differ only at their ends have names of their own.
*/}}
{{- define "kvasir.fullname" -}}
{{- include "kvasir.sections" . -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $full = default $full .Values.fullnameOverride -}}
{{- $valid := regexReplaceAll "[^a-z0-9]+" (lower $full) "-" | trimAll "-" -}}
{{- if not (regexMatch "^[a-z]" $valid) -}}{{- $valid = printf "k-%s" $valid -}}{{- end -}}
{{- if gt (len $valid) 40 -}}
  {{- $valid = printf "%s-%s" (trunc 31 $valid | trimSuffix "-") (sha256sum $full | trunc 8) -}}
{{- end -}}
{{- $valid -}}
{{- end }}

{{/* Refuses null where the chart reads what is inside. Every template asks for the name, and so comes through here. */}}
{{- define "kvasir.sections" -}}
{{- range list "image" "frontend" "admin" "milvus" "service" "serviceAccount" "rbac" "autoscaling" "planner" "podDisruptionBudget" "networkPolicy" "serviceMonitor" "prometheusRule" "engineImages" "huggingface" "test" -}}
  {{- if not (kindIs "map" (index $.Values .)) -}}
    {{- fail (printf "%s: null takes its defaults away, and the chart needs them; leave it out, or set the values in it" .) -}}
  {{- end -}}
{{- end -}}
{{- if not (kindIs "map" .Values.huggingface.cache) -}}
  {{- fail "huggingface.cache: null takes its defaults away, and the chart needs them; leave it out, or set the values in it" -}}
{{- end -}}
{{- end }}

{{/* Takes out of a map, and of the maps in it, what is null: as if it were not there. */}}
{{- define "kvasir.dropNulls" -}}
{{- range $key, $value := . -}}
  {{- if kindIs "invalid" $value -}}{{- $_ := unset $ $key -}}
  {{- else if kindIs "map" $value -}}{{- include "kvasir.dropNulls" $value -}}
  {{- end -}}
{{- end -}}
{{- end }}

{{- define "kvasir.serviceAccount" -}}
{{- default (ternary (include "kvasir.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end }}

{{/* Labels of all but pods: a version of the chart that changes no pod must not roll the engines over. */}}
{{- define "kvasir.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* With the component these select pods, and must never change. */}}
{{- define "kvasir.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "kvasir.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{/* A duration of the configuration, such as 1m30s or 250ms, in whole seconds, rounded up. */}}
{{- define "kvasir.seconds" -}}
{{- $text := toString . -}}
{{- if not (regexMatch "^(0|([0-9]+(\\.[0-9]+)?(h|m|s|ms))+)$" $text) -}}
  {{- fail (printf "config.server.drain: %q is no duration such as 60s; the chart computes terminationGracePeriodSeconds of it" $text) -}}
{{- end -}}
{{- $seconds := 0.0 -}}
{{- range regexFindAll "[0-9]+(\\.[0-9]+)?(ms|h|m|s)" $text -1 -}}
  {{- $unit := regexFind "[a-z]+" . -}}
  {{- $seconds = addf $seconds (mulf (trimSuffix $unit . | float64) (get (dict "h" 3600.0 "m" 60.0 "s" 1.0 "ms" 0.001) $unit)) -}}
{{- end -}}
{{- int (ceil $seconds) -}}
{{- end }}

{{/*
kvasir.yaml: what the chart derives, under what the value config says. The pod's environment repeats server.listen,
since the image sets that, too.
*/}}
{{- define "kvasir.config" -}}
{{- $name := include "kvasir.fullname" . -}}
{{- $own := .Values.config | default dict | deepCopy -}}
{{- include "kvasir.dropNulls" $own -}}
{{- if or (dig "server" "listen" "" $own) (hasKey (dig "server" dict $own) "admin") -}}
  {{- fail "config.server.listen and config.server.admin are the chart's: the port is frontend.httpPort, and probes need the admin port 9090" -}}
{{- end -}}
{{- $admin := printf "%s-admin" $name -}}
{{- $derived := dict
  "server" (dict
    "listen" (printf ":%d" (int .Values.frontend.httpPort))
    "admin" ":9090"
    "admin_hosts" (list $admin (printf "%s.%s" $admin .Release.Namespace) (printf "%s.%s.svc" $admin .Release.Namespace) (printf "%s.%s.svc.cluster.local" $admin .Release.Namespace))
    "drain" (dict "delay" "5s" "timeout" "60s"))
  "routing" (dict "policy" .Values.frontend.routerMode)
  "gpu" (dict "mode" "off") -}}
{{- with .Values.admin.existingSecret -}}
  {{- $_ := set $derived.server "admin_key_file" (printf "/secrets/%s/%s" . $.Values.admin.existingSecretKey) -}}
{{- end -}}
{{- if .Values.milvus.address -}}
  {{- $milvus := dict "address" .Values.milvus.address -}}
  {{- if .Values.milvus.existingSecret -}}
    {{- $_ := set $milvus "key_file" (printf "/secrets/%s/%s" .Values.milvus.existingSecret .Values.milvus.existingSecretKey) -}}
  {{- end -}}
  {{- $_ := set $derived "cache" (dict "store" "milvus" "milvus" $milvus) -}}
{{- end -}}
{{- if eq (toString .Values.planner.mode) "keda" -}}
  {{- $_ := set $derived "planner" (dict "mode" "advise" "keda" (dict "listen" ":9091") "kubernetes" (dict "lease" (printf "%s-planner" $name))) -}}
  {{- if or (dig "planner" "mode" "" $own) (dig "planner" "keda" "listen" "" $own) (dig "planner" "kubernetes" dict $own) -}}
    {{- fail "config.planner: mode, keda.listen and kubernetes are the chart's with planner.mode: keda" -}}
  {{- end -}}
{{- else if not (has (toString .Values.planner.mode) (list "off" "false")) -}}
  {{- $_ := set $derived "planner" (dict "mode" .Values.planner.mode "kubernetes" (include "kvasir.ownTargets" (dict "root" . "own" $own) | fromJson)) -}}
{{- end -}}
{{- $config := mergeOverwrite $derived (deepCopy $own) -}}
{{- if and (dig "planner" "kubernetes" dict $config) (not (dig "planner" "kubernetes" "lease" "" $config)) -}}
  {{- $_ := set $config.planner.kubernetes "lease" (printf "%s-planner" $name) -}}
{{- end -}}
{{- $sources := list -}}
{{- if .Values.workers -}}
  {{- /* All that the pods of workers have, as in an umbrella chart the pods of others are of the same instance. */}}
  {{- $name := default .Chart.Name .Values.nameOverride -}}
  {{- $selector := printf "app.kubernetes.io/name=%s,app.kubernetes.io/instance=%s,app.kubernetes.io/component=worker" $name .Release.Name -}}
  {{- $sources = list (dict "kind" "kubernetes" "namespace" .Release.Namespace "selector" $selector "port" "http") -}}
{{- end -}}
{{- with concat $sources (dig "discovery" list $own | default list) -}}
  {{- $_ := set $config "discovery" . -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}

{{/*
The namespaces of this cluster in which Kvasir looks for workers, as JSON: {NAMESPACE: true if it reads InferencePools
there}. An entry with a kubeconfig looks into another cluster, with the rights that it has by that.
*/}}
{{- define "kvasir.watched" -}}
{{- $release := .Release.Namespace -}}
{{- $watched := dict -}}
{{- range (include "kvasir.config" . | fromYaml).discovery -}}
  {{- if and (eq (toString .kind) "kubernetes") (not .kubeconfig) -}}
    {{- $ns := .namespace | default $release -}}
    {{- $_ := set $watched $ns (or (get $watched $ns | default false) (not (empty .inference_pool))) -}}
  {{- end -}}
{{- end -}}
{{- toJson $watched -}}
{{- end }}

{{/*
What the planner scales of this chart's own workers, as JSON like config.planner.kubernetes: the one worker that does
both, or the one of prefill and the one of decode. Nothing where the values name targets.
*/}}
{{- define "kvasir.ownTargets" -}}
{{- $named := dig "planner" "kubernetes" dict .own -}}
{{- $targets := dict -}}
{{- if not (or $named.both $named.prefill $named.decode) -}}
  {{- range include "kvasir.workers" .root | fromJsonArray -}}
    {{- if hasKey $targets .role -}}{{- fail (printf "planner: there are several workers of type %s; name the one to scale in config.planner.kubernetes.%s, such as deployment/%s, and what it serves in config.planner.model" .role .role .service) -}}{{- end -}}
    {{- $_ := set $targets .role (printf "deployment/%s" .service) -}}
  {{- end -}}
  {{- if and $targets.both (or $targets.prefill $targets.decode) -}}{{- fail "planner: some workers do both and some do not; name those to scale in config.planner.kubernetes" -}}{{- end -}}
  {{- if not $targets -}}{{- fail "planner: there is no worker to scale; name targets in config.planner.kubernetes" -}}{{- end -}}
{{- end -}}
{{- toJson $targets -}}
{{- end }}

{{/* The Deployments of the chart that others than Helm scale, as JSON: their replicas are kept. */}}
{{- define "kvasir.scaledByOthers" -}}
{{- $planned := include "kvasir.planned" . | fromJson -}}
{{- $names := list -}}
{{- if eq (toString .Values.planner.mode) "keda" -}}
  {{- range $role, $target := include "kvasir.ownTargets" (dict "root" . "own" dict) | fromJson -}}{{- $names = append $names (trimPrefix "deployment/" $target) -}}{{- end -}}
{{- else if and $planned.apply (eq $planned.namespace .Release.Namespace) -}}
  {{- $names = $planned.deployments | default list -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}

{{/*
What the planner does in this cluster, as JSON: {namespace, lease, deployments, statefulsets, dynamographdeployments}.
Empty where it does nothing, or has a kubeconfig, and so the rights that it has by that.
*/}}
{{- define "kvasir.planned" -}}
{{- $planned := dict -}}
{{- $planner := (include "kvasir.config" . | fromYaml).planner | default dict -}}
{{- $k := $planner.kubernetes | default dict -}}
{{- if and $k (not (has (toString $planner.mode) (list "off" "false"))) (not $k.kubeconfig) -}}
  {{- $planned = dict "namespace" ($k.namespace | default .Release.Namespace) "lease" $k.lease "apply" (eq (toString $planner.mode) "apply") -}}
  {{- range compact (list $k.both $k.prefill $k.decode) -}}
    {{- $parts := splitList "/" . -}}
    {{- if lt (len $parts) 2 -}}{{- fail (printf "config.planner.kubernetes: %q is no target such as deployment/vllm" .) -}}{{- end -}}
    {{- $plural := printf "%ss" (first $parts) -}}
    {{- $_ := set $planned $plural (append (get $planned $plural | default list) (index $parts 1) | uniq) -}}
  {{- end -}}
{{- end -}}
{{- toJson $planned -}}
{{- end }}

{{/* Secrets that are mounted, each once, as JSON. */}}
{{- define "kvasir.secrets" -}}
{{- concat (.Values.secrets | default list) (list .Values.milvus.existingSecret .Values.admin.existingSecret) | compact | uniq | toJson -}}
{{- end }}

{{/* The workers with their defaults, as JSON. A worker's own values stand beside what is derived of them. */}}
{{- define "kvasir.workers" -}}
{{- $full := include "kvasir.fullname" . -}}
{{- $values := .Values -}}
{{- $names := dict -}}
{{- $workers := list -}}
{{- range $i, $w := .Values.workers -}}
  {{- $role := $w.workerType | default "both" -}}
  {{- $name := $w.name | default (printf "%sworker%d" $role $i) -}}
  {{- if eq $name "admin" -}}{{- fail (printf "workers[%d].name: admin is the name of the Service that Kvasir's metrics are on; choose another" $i) -}}{{- end -}}
  {{- if eq $name "keda" -}}{{- fail (printf "workers[%d].name: keda is the name of the Service that KEDA asks; choose another" $i) -}}{{- end -}}
  {{- if hasKey $names $name -}}{{- fail (printf "workers[%d]: another worker is called %s, too" $i $name) -}}{{- end -}}
  {{- $_ := set $names $name true -}}
  {{- $service := printf "%s-%s" $full $name -}}
  {{- if gt (len $service) 63 -}}{{- fail (printf "workers[%d]: %s is too long for the name of a Service; set fullnameOverride or a shorter name" $i $service) -}}{{- end -}}
  {{- $engine := $w.engine | default $values.engine -}}
  {{- $connector := ternary "" "nixl" (eq $role "both") -}}
  {{- if hasKey $w "connector" -}}{{- $connector = ternary "" $w.connector (has $w.connector (list nil "null")) -}}{{- end -}}
  {{- if and (eq $engine "vllm") (eq $connector "mooncake") (ne $role "both") -}}
    {{- fail (printf "workers[%d].connector: Kvasir hands over between vLLM workers by NIXL, not by Mooncake; set connector: nixl, or workerType: both for Mooncake's store" $i) -}}
  {{- end -}}
  {{- $model := $w.model | default dict -}}
  {{- $path := $model.path | default "TinyLlama/TinyLlama-1.1B-Chat-v1.0" -}}
  {{- $derived := dict "name" $name "service" $service "role" $role "engine" $engine "connector" $connector
    "image" ($w.image | default (get $values.engineImages $engine))
    "path" $path "served" ($model.name | default $path) "gpus" (int ($model.tensorParallelSize | default 1))
    "grace" (int ($w.terminationGracePeriodSeconds | default 330)) -}}
  {{- $workers = append $workers (merge $derived $w) -}}
{{- end -}}
{{- toJson $workers -}}
{{- end }}
