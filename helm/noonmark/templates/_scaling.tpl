{{/* Autoscalers. */}}

{{- define "noonmark.hpa" -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ include "noonmark.partName" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "noonmark.partLabels" . | nindent 4 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "noonmark.partName" . }}
  minReplicas: {{ int .values.autoscaling.minReplicas }}
  maxReplicas: {{ int .values.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ int .values.autoscaling.targetCPUUtilizationPercentage }}
  {{- with .values.autoscaling.cooldownSeconds }}
  behavior:
    scaleDown:
      stabilizationWindowSeconds: {{ int . }}
  {{- end }}
{{- end }}

{{- define "noonmark.prometheusTrigger" -}}
{{- $scaling := .values.autoscaling -}}
- type: prometheus
  name: {{ .name }}
  # Value: current pods × measured / target. An age is not divided by the number of pods.
  metricType: Value
  metadata:
    serverAddress: {{ $scaling.prometheus.serverAddress | quote }}
    query: {{ .query | quote }}
    threshold: {{ include "noonmark.text" .threshold | quote }}
    # Do not scale down if Prometheus does not answer.
    ignoreNullValues: "false"
    {{- with $scaling.prometheus.authModes }}
    authModes: {{ . }}
    {{- end }}
  {{- with $scaling.prometheus.authenticationRef }}
  authenticationRef:
    name: {{ . | quote }}
  {{- end }}
{{- end }}

{{/*
KEDA scales on the age of the backlog in each lane, relative to its objective, and on the share of busy slots. Without
the slots, an age of 0 would remove the pods that keep it at 0.
*/}}
{{- define "noonmark.scaledObject" -}}
{{- $scaling := .values.autoscaling }}
{{- $own := printf "namespace=%q" .root.Release.Namespace }}
{{- $matchers := ternary $own $scaling.prometheus.matchers (kindIs "invalid" $scaling.prometheus.matchers) }}
{{- $labels := compact (list (printf "pool=%q" .pool) $matchers) | join "," }}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {{ include "noonmark.partName" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "noonmark.partLabels" . | nindent 4 }}
spec:
  scaleTargetRef:
    name: {{ include "noonmark.partName" . }}
  minReplicaCount: {{ int $scaling.minReplicas }}
  maxReplicaCount: {{ int $scaling.maxReplicas }}
  pollingInterval: {{ int $scaling.pollingSeconds }}
  cooldownPeriod: {{ int $scaling.cooldownSeconds }}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleDown:
          stabilizationWindowSeconds: {{ int $scaling.cooldownSeconds }}
  triggers:
    {{- range $lane := list "high" "normal" "low" }}
    {{- $query := printf "max(noonmark_start_backlog_seconds{%s,lane=%q})" $labels $lane }}
    {{- include "noonmark.prometheusTrigger" (merge (dict "name" (printf "backlog-%s" $lane) "query" $query "threshold" (get $scaling.backlogSeconds $lane)) $) | nindent 4 }}
    {{- end }}
    {{- if gt (float64 $scaling.busyShare) 0.0 }}
    {{- $slots := printf "max by (state) (noonmark_pool_slots{%s})" $labels }}
    {{- $query := printf "sum(max by (state) (noonmark_pool_slots{%s,state=\"busy\"})) / clamp_min(sum(%s), 1)" $labels $slots }}
    {{- include "noonmark.prometheusTrigger" (merge (dict "name" "busy" "query" $query "threshold" $scaling.busyShare) $) | nindent 4 }}
    {{- end }}
{{- end }}
