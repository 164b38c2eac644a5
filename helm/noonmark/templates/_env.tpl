{{/* Environment of a container: settings inline, secrets by reference to existing Secrets. */}}

{{/* Text of a setting. Helm reads numbers as floats: 33554432 would become 3.3554432e+07. */}}
{{- define "noonmark.text" -}}
{{- if kindIs "slice" . }}
{{- range $place, $item := . }}{{ if $place }},{{ end }}{{ include "noonmark.text" $item }}{{ end }}
{{- else if kindIs "float64" . }}
{{- if eq (floor .) . }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- else }}{{ toString . }}
{{- end }}
{{- end }}

{{- define "noonmark.secretEnv" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret | quote }}
      key: {{ .key | quote }}
{{- end }}

{{/* Environment of all containers. Takes root, component, values (with `config`, `databaseSecret` and `kafkaSecret`). */}}
{{- define "noonmark.env" -}}
{{- $v := .root.Values }}
{{- $database := .values.databaseSecret | default dict -}}
{{ include "noonmark.secretEnv" (dict "name" "NOONMARK_DATABASE_URL" "secret" (default $v.database.existingSecret $database.name) "key" (default $v.database.key $database.key)) }}
{{- with $v.database.tls.mode }}
- {name: PGSSLMODE, value: {{ . | quote }}}
{{- end }}
{{- if $v.database.tls.caSecret.name }}
- {name: PGSSLROOTCERT, value: /etc/noonmark/postgres/ca.crt}
{{- end }}
{{- if $v.database.tls.clientSecret.name }}
- {name: PGSSLCERT, value: /etc/noonmark/postgres/tls.crt}
- {name: PGSSLKEY, value: /etc/noonmark/postgres/tls.key}
{{- end }}
- {name: NOONMARK_KAFKA_BOOTSTRAP, value: {{ $v.kafka.bootstrap | quote }}}
- {name: NOONMARK_KAFKA_SECURITY_PROTOCOL, value: {{ $v.kafka.securityProtocol }}}
- {name: NOONMARK_KAFKA_GROUP_PROTOCOL, value: {{ $v.kafka.groupProtocol }}}
- {name: NOONMARK_TOPIC_PREFIX, value: {{ $v.kafka.topicPrefix | quote }}}
- {name: NOONMARK_KAFKA_PARTITIONS, value: {{ include "noonmark.text" $v.kafka.partitions | quote }}}
- {name: NOONMARK_KAFKA_REPLICATION, value: {{ include "noonmark.text" $v.kafka.replication | quote }}}
{{- with $v.kafka.sasl.mechanism }}
- {name: NOONMARK_KAFKA_SASL_MECHANISM, value: {{ . }}}
{{- end }}
{{- with default $v.kafka.sasl.existingSecret (get (.values.kafkaSecret | default dict) "name") }}
{{ include "noonmark.secretEnv" (dict "name" "NOONMARK_KAFKA_SASL_USERNAME" "secret" . "key" $v.kafka.sasl.usernameKey) }}
{{ include "noonmark.secretEnv" (dict "name" "NOONMARK_KAFKA_SASL_PASSWORD" "secret" . "key" $v.kafka.sasl.passwordKey) }}
{{- end }}
{{- if $v.kafka.tls.caSecret.name }}
- {name: NOONMARK_KAFKA_SSL_CA_LOCATION, value: /etc/noonmark/kafka/ca.crt}
{{- end }}
{{- if $v.kafka.tls.clientSecret.name }}
- {name: NOONMARK_KAFKA_SSL_CERTIFICATE_LOCATION, value: /etc/noonmark/kafka/tls.crt}
- {name: NOONMARK_KAFKA_SSL_KEY_LOCATION, value: /etc/noonmark/kafka/tls.key}
{{- end }}
{{- range $name := keys .values.config | sortAlpha }}
- {name: NOONMARK_{{ upper $name }}, value: {{ include "noonmark.text" (get $.values.config $name) | quote }}}
{{- end }}
{{- end }}

{{/* Additional environment of a service. Takes root, component, pool, values. */}}
{{- define "noonmark.serviceEnv" -}}
{{ include "noonmark.env" . }}
- {name: NOONMARK_METRICS_HOST, value: {{ .root.Values.listenAddress | quote }}}
- {name: NOONMARK_METRICS_PORT, value: "9090"}
{{- if eq .component "api" }}
- {name: NOONMARK_API_HOST, value: {{ .root.Values.listenAddress | quote }}}
- {name: NOONMARK_API_PORT, value: "8080"}
{{- else if eq .component "dispatcher" }}
{{- with .values.appOutboxes.existingSecret }}
{{ include "noonmark.secretEnv" (dict "name" "NOONMARK_APP_OUTBOXES" "secret" . "key" $.values.appOutboxes.key) }}
{{- end }}
{{- else if eq .component "worker" }}
- {name: NOONMARK_POOL, value: {{ .pool | quote }}}
- {name: NOONMARK_WORKER_SLOTS, value: {{ include "noonmark.text" .values.slots | quote }}}
{{- with .values.handlers }}
- {name: NOONMARK_HANDLERS, value: {{ join "," . | quote }}}
{{- end }}
{{- if .values.jobSecrets }}
- {name: NOONMARK_SECRETS_DIR, value: /etc/noonmark/secrets}
{{- end }}
{{- else if eq .component "observer" }}
{{- with .values.alertWebhook.existingSecret }}
{{ include "noonmark.secretEnv" (dict "name" "NOONMARK_ALERT_WEBHOOK_URL" "secret" . "key" $.values.alertWebhook.urlKey) }}
{{ include "noonmark.secretEnv" (dict "name" "NOONMARK_ALERT_WEBHOOK_SECRET" "secret" . "key" $.values.alertWebhook.secretKey) }}
{{- end }}
{{- else if eq .component "watchdog" }}
{{ include "noonmark.secretEnv" (dict "name" "NOONMARK_WATCHDOG_URL" "secret" .values.beatUrl.existingSecret "key" .values.beatUrl.key) }}
{{- end }}
{{- with .values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Volumes and mounts of the certificates: `/etc/noonmark/{postgres,kafka}/{ca.crt,tls.crt,tls.key}`. */}}
{{- define "noonmark.tlsVolumes" -}}
{{- range $place, $tls := dict "postgres" .Values.database.tls "kafka" .Values.kafka.tls }}
{{- if or $tls.caSecret.name $tls.clientSecret.name }}
- name: {{ $place }}-tls
  projected:
    # libpq rejects a private key that others can read.
    defaultMode: 0440
    sources:
      {{- with $tls.caSecret }}
      {{- if .name }}
      - secret:
          name: {{ .name | quote }}
          items:
            - {key: {{ .key | quote }}, path: ca.crt}
      {{- end }}
      {{- end }}
      {{- with $tls.clientSecret }}
      {{- if .name }}
      - secret:
          name: {{ .name | quote }}
          items:
            - {key: {{ .certKey | quote }}, path: tls.crt}
            - {key: {{ .keyKey | quote }}, path: tls.key}
      {{- end }}
      {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "noonmark.tlsMounts" -}}
{{- range $place, $tls := dict "postgres" .Values.database.tls "kafka" .Values.kafka.tls }}
{{- if or $tls.caSecret.name $tls.clientSecret.name }}
- {name: {{ $place }}-tls, mountPath: /etc/noonmark/{{ $place }}, readOnly: true}
{{- end }}
{{- end }}
{{- end }}
