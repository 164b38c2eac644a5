{{/* How a target is scraped. Rules and dashboards know services by `job`, so it is the same in every installation. */}}
{{- define "noonmark.endpoint" -}}
{{- $metrics := .root.Values.metrics -}}
path: /metrics
interval: {{ $metrics.interval | quote }}
scrapeTimeout: {{ $metrics.scrapeTimeout | quote }}
relabelings:
  {{- toYaml (concat .job $metrics.relabelings) | nindent 2 }}
{{- with $metrics.metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
