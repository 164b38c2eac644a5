{{/* Scrape endpoint of a target. Rules and dashboards identify services by `job`, so it is the same in all installations. */}}
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
