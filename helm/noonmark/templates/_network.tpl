{{/* Rules of the network policies. An empty list of peers means anywhere, as in Kubernetes. */}}

{{/* One egress rule; takes to (peers) and ports (numbers), and protocols. */}}
{{- define "noonmark.egressRule" -}}
{{- $given := . -}}
- ports:
    {{- range $port := .ports | uniq }}
    {{- range $protocol := $given.protocols | default (list "TCP") }}
    - {protocol: {{ $protocol }}, port: {{ int $port }}}
    {{- end }}
    {{- end }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Port of a URL: explicit, or the default of its scheme. */}}
{{- define "noonmark.urlPort" -}}
{{- $host := (urlParse .).host }}
{{- $named := regexFind ":[0-9]+$" $host | trimPrefix ":" }}
{{- default (ternary "443" "80" (hasPrefix "https:" .)) $named }}
{{- end }}

{{/* Ports of the brokers, as a JSON list. */}}
{{- define "noonmark.kafkaPorts" -}}
{{- $ports := list }}
{{- range splitList "," .Values.kafka.bootstrap }}
{{- with regexFind ":[0-9]+$" (trim .) | trimPrefix ":" }}{{ $ports = append $ports (int .) }}{{ end }}
{{- end }}
{{- range .Values.kafka.ports }}{{ $ports = append $ports (int .) }}{{ end }}
{{- toJson (uniq $ports) }}
{{- end }}

{{/* Egress of all pods: DNS, Postgres, Kafka and its tokens, traces; for the API and intake also the identity provider. */}}
{{- define "noonmark.commonEgress" -}}
{{- $policy := .root.Values.networkPolicy -}}
{{ include "noonmark.egressRule" (dict "to" $policy.dnsTo "ports" (list 53) "protocols" (list "UDP" "TCP")) }}
{{ include "noonmark.egressRule" (dict "to" $policy.databaseTo "ports" .root.Values.database.ports) }}
{{ include "noonmark.egressRule" (dict "to" $policy.kafkaTo "ports" (include "noonmark.kafkaPorts" .root | fromJsonArray)) }}
{{- $urls := list "kafka_oauth_token_url" "otlp_endpoint" }}
{{- if has .component (list "api" "intake") }}{{ $urls = append $urls "oidc_issuer" }}{{ end }}
{{- range $urls }}
{{- with get $.values.config . }}
{{ include "noonmark.egressRule" (dict "ports" (list (include "noonmark.urlPort" .))) }}
{{- end }}
{{- end }}
{{- with $policy.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Additional egress of one part. */}}
{{- define "noonmark.ownEgress" -}}
{{- $config := .values.config }}
{{- if eq .component "worker" }}
{{- with .values.networkPolicy.egress }}
{{ toYaml . }}
{{- end }}
{{- with $config.http_allow_networks }}
- to:
    {{- range . }}
    {{- $whole := ternary "/128" "/32" (contains ":" .) }}
    - ipBlock: {cidr: {{ ternary . (print . $whole) (contains "/" .) | quote }}}
    {{- end }}
{{- end }}
{{- else if eq .component "observer" }}
{{- if .values.alertWebhook.existingSecret }}
{{ include "noonmark.egressRule" (dict "ports" .values.networkPolicy.ports) }}
{{- end }}
{{- with $config.alertmanager_url }}
{{ include "noonmark.egressRule" (dict "ports" (list (include "noonmark.urlPort" .))) }}
{{- end }}
{{- else if eq .component "watchdog" }}
{{ include "noonmark.egressRule" (dict "ports" .values.networkPolicy.ports) }}
{{- end }}
{{- end }}

{{- define "noonmark.networkPolicy" -}}
{{- $values := include "noonmark.part" . | fromYaml }}
{{- $part := merge (dict "values" $values) . }}
{{- $policy := .root.Values.networkPolicy }}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "noonmark.partName" $part }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "noonmark.partLabels" $part | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "noonmark.partSelector" $part | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    {{- $test := dict "podSelector" (dict "matchLabels" (include "noonmark.partSelector" (dict "root" .root "component" "test") | fromYaml)) }}
    {{- if eq .component "api" }}
    - ports:
        - {protocol: TCP, port: http}
      {{- with $policy.apiFrom }}
      from:
        {{- toYaml (append . $test) | nindent 8 }}
      {{- end }}
    {{- end }}
    {{- $readers := $policy.metricsFrom }}
    {{- if eq .component "api" }}{{ $readers = append $readers $test }}{{ end }}
    {{- with $readers }}
    - ports:
        - {protocol: TCP, port: metrics}
      from:
        {{- toYaml . | nindent 8 }}
    {{- end }}
  egress:
    {{- include "noonmark.commonEgress" $part | nindent 4 }}
    {{- with include "noonmark.ownEgress" $part | trim }}{{ . | nindent 4 }}{{ end }}
{{- end }}
