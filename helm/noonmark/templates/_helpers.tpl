{{/* Names, labels, and the settings of one service or pool. */}}

{{- define "noonmark.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 48 | trimSuffix "-" }}
{{- end }}

{{/* At most 48 characters, so that derived names fit into a label (63). Release names can contain dots, Services cannot. */}}
{{- define "noonmark.fullname" -}}
{{- $name := include "noonmark.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | replace "." "-" | trunc 48 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | replace "." "-" | trunc 48 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Name of a part's objects; `of` = a component from noonmark.part. A long pool name is truncated and gets a hash suffix. */}}
{{- define "noonmark.partName" -}}
{{- $full := printf "%s-%s" (include "noonmark.fullname" .root) .component }}
{{- with .pool }}{{ $full = printf "%s-%s" $full (replace "_" "-" .) }}{{ end }}
{{- if gt (len $full) 63 }}
{{- printf "%s-%s" (trunc 54 $full | trimSuffix "-") (sha256sum $full | trunc 8) }}
{{- else }}
{{- $full }}
{{- end }}
{{- end }}

{{- define "noonmark.selectorLabels" -}}
app.kubernetes.io/name: {{ include "noonmark.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "noonmark.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "noonmark.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: noonmark
{{- end }}

{{/* Selector labels of a part's pods. Never change them: selectors are immutable. */}}
{{- define "noonmark.partSelector" -}}
{{ include "noonmark.selectorLabels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- with .pool }}
noonmark.io/pool: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "noonmark.partLabels" -}}
{{ include "noonmark.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- with .pool }}
noonmark.io/pool: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "noonmark.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "noonmark.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/*
Overlay `over` on `base`: maps are merged at every level, all other values are replaced, also by zero, false and null.
(mergeOverwrite ignores empty values.)
*/}}
{{- define "noonmark.overlay" -}}
{{- $base := .base }}
{{- range $key, $value := .over }}
{{- if and (kindIs "map" $value) (kindIs "map" (get $base $key)) }}
{{- include "noonmark.overlay" (dict "base" (get $base $key) "over" $value) }}
{{- else }}
{{- $_ := set $base $key $value }}
{{- end }}
{{- end }}
{{- end }}

{{/*
A part as YAML: `values` of one service or pool over `defaults` (and over `worker` for a pool), `config` over the
common one. Takes root, component, pool.
*/}}
{{- define "noonmark.part" -}}
{{- $values := deepCopy .root.Values.defaults }}
{{- $own := deepCopy (get .root.Values .component) }}
{{- $_ := unset $own "pools" }}
{{- include "noonmark.overlay" (dict "base" $values "over" $own) }}
{{- with .pool }}
{{- include "noonmark.overlay" (dict "base" $values "over" (get $.root.Values.worker.pools . | default dict | deepCopy)) }}
{{- end }}
{{- $config := deepCopy .root.Values.config }}
{{- include "noonmark.overlay" (dict "base" $config "over" ($values.config | default dict)) }}
{{- $_ := set $values "config" $config }}
{{- toYaml $values }}
{{- end }}

{{/* `api`, or `worker pool reports`: the name of a part in messages. */}}
{{- define "noonmark.partTitle" -}}
{{ .component }}{{ with .pool }} pool {{ . }}{{ end }}
{{- end }}

{{/* Image of a part. Missing keys come from the common image. */}}
{{- define "noonmark.image" -}}
{{- $image := deepCopy .root.Values.image }}
{{- include "noonmark.overlay" (dict "base" $image "over" (.values.image | default dict)) }}
{{- $own := .values.image | default dict }}
{{- if and $own.tag (not $own.digest) }}{{ $_ := set $image "digest" "" }}{{ end }}
{{- $tag := default .root.Chart.AppVersion $image.tag }}
{{- if $image.digest }}
{{- printf "%s:%s@%s" $image.repository $tag $image.digest }}
{{- else }}
{{- printf "%s:%s" $image.repository $tag }}
{{- end }}
{{- end }}

{{/* Seconds that a part needs from SIGTERM to its exit: README.md, "Shutdown". */}}
{{- define "noonmark.neededGrace" -}}
{{- $drain := dig "drain_seconds" 30 .values.config | float64 | ceil | int }}
{{- $needed := add $drain 4 2 }}
{{- if eq .component "worker" }}
{{- $needed = add $needed (dig "kill_grace_seconds" 5 .values.config | float64 | ceil | int) }}
{{- else if eq .component "api" }}
{{- $needed = add $needed (int .values.preStopSleepSeconds) }}
{{- end }}
{{- $needed }}
{{- end }}

{{- define "noonmark.grace" -}}
{{- if kindIs "invalid" .values.terminationGracePeriodSeconds }}
{{- include "noonmark.neededGrace" . }}
{{- else }}
{{- int .values.terminationGracePeriodSeconds }}
{{- end }}
{{- end }}

{{/* `none`, `hpa` or `keda`. */}}
{{- define "noonmark.autoscaler" -}}
{{- if eq .component "api" }}{{ ternary "hpa" "none" .values.autoscaling.enabled }}
{{- else if eq .component "worker" }}{{ .values.autoscaling.type }}
{{- else }}none{{ end }}
{{- end }}

{{/* Maximum number of pods of a part. */}}
{{- define "noonmark.mostReplicas" -}}
{{- if ne (include "noonmark.autoscaler" .) "none" }}{{ int .values.autoscaling.maxReplicas }}
{{- else }}{{ int (default 1 .values.replicaCount) }}{{ end }}
{{- end }}
