{{/* The Deployment of a service or pool. */}}

{{/* Takes the root. The cluster assigns ids that are null. */}}
{{- define "noonmark.podSecurity" -}}
runAsNonRoot: true
{{- range $name := list "runAsUser" "runAsGroup" "fsGroup" }}
{{- with get $.Values.podSecurityContext $name }}
{{ $name }}: {{ int64 . }}
{{- end }}
{{- end }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "noonmark.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/*
Changes if a Secret of the pod changed before an upgrade, so that pods restart and read it. It uses the version and not
the content, because a hash of a password can be brute-forced. Empty without a cluster (`helm template`).
*/}}
{{- define "noonmark.secretVersions" -}}
{{- $root := .root }}
{{- $v := $root.Values }}
{{- $names := list $v.database.existingSecret (get (.values.databaseSecret | default dict) "name") $v.kafka.sasl.existingSecret (get (.values.kafkaSecret | default dict) "name") }}
{{- range list $v.database.tls $v.kafka.tls }}
{{- $names = concat $names (list .caSecret.name .clientSecret.name) }}
{{- end }}
{{- range list "alertWebhook" "beatUrl" "appOutboxes" }}
{{- $names = append $names (get (get $.values . | default dict) "existingSecret") }}
{{- end }}
{{- $versions := list }}
{{- range compact $names | uniq | sortAlpha }}
{{- $found := lookup "v1" "Secret" $root.Release.Namespace . }}
{{- if $found }}{{ $versions = append $versions (printf "%s=%s" . $found.metadata.resourceVersion) }}{{ end }}
{{- end }}
{{- join "," $versions }}
{{- end }}

{{/* Takes root and component, and pool for workers. */}}
{{- define "noonmark.deployment" -}}
{{- $values := include "noonmark.part" . | fromYaml }}
{{- $part := merge (dict "values" $values) . }}
{{- $root := .root }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "noonmark.partName" $part }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "noonmark.partLabels" $part | nindent 4 }}
spec:
  {{- if eq (include "noonmark.autoscaler" $part) "none" }}
  replicas: {{ int (default 1 $values.replicaCount) }}
  {{- end }}
  revisionHistoryLimit: {{ int $values.revisionHistoryLimit }}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      # A new pod is ready before an old one stops. Workers are replaced a quarter at a time.
      maxUnavailable: 0
      maxSurge: {{ ternary "25%" 1 (eq .component "worker") }}
  selector:
    matchLabels:
      {{- include "noonmark.partSelector" $part | nindent 6 }}
  template:
    metadata:
      labels:
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- include "noonmark.partSelector" $part | nindent 8 }}
        app.kubernetes.io/part-of: noonmark
      annotations:
        kubectl.kubernetes.io/default-container: {{ .component }}
        checksum/config: {{ toYaml $values.config | sha256sum }}
        {{- with include "noonmark.secretVersions" $part }}
        checksum/secrets: {{ sha256sum . }}
        {{- end }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      {{- include "noonmark.podSpec" $part | nindent 6 }}
{{- end }}

{{- define "noonmark.podSpec" -}}
{{- $values := .values -}}
serviceAccountName: {{ include "noonmark.serviceAccountName" .root }}
automountServiceAccountToken: false
# Service links would set variables such as NOONMARK_API_PORT, which look like invalid settings.
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "noonmark.podSecurity" .root | nindent 2 }}
terminationGracePeriodSeconds: {{ include "noonmark.grace" . }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
containers:
  - name: {{ .component }}
    {{- include "noonmark.serviceContainer" . | nindent 4 }}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: {{ $values.tmpSizeLimit | quote }}}
  {{- with include "noonmark.tlsVolumes" .root }}{{ . | trim | nindent 2 }}{{ end }}
  {{- if eq .component "worker" }}
  {{- range $values.jobSecrets }}
  - name: {{ printf "jobs-%s" (sha256sum .namespace | trunc 12) }}
    secret: {secretName: {{ .existingSecret | quote }}, defaultMode: 0440}
  {{- end }}
  {{- end }}
  {{- with $values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  {{- $own := dict "labelSelector" (dict "matchLabels" (include "noonmark.partSelector" $ | fromYaml)) }}
  - {{ merge (deepCopy .) $own | toYaml | nindent 4 | trim }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "noonmark.serviceContainer" -}}
{{- $values := .values -}}
image: {{ include "noonmark.image" . | quote }}
imagePullPolicy: {{ dig "pullPolicy" .root.Values.image.pullPolicy (default dict $values.image) }}
args:
  - {{ .component }}
  {{- if eq .component "worker" }}
  {{- with $values.handlersPath }}
  - --path
  - {{ . | quote }}
  {{- end }}
  {{- end }}
securityContext:
  {{- include "noonmark.containerSecurity" . | nindent 2 }}
env:
  {{- include "noonmark.serviceEnv" . | nindent 2 }}
{{- with $values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - {name: metrics, containerPort: 9090}
  {{- if eq .component "api" }}
  - {name: http, containerPort: 8080}
  {{- end }}
# All three check progress. /livez fails if a loop has not completed a pass in time, /readyz if a dependency is
# unreachable. An outage of Postgres or Kafka restarts no pod.
startupProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- if and (eq .component "api") (gt (int $values.preStopSleepSeconds) 0) }}
lifecycle:
  preStop:
    sleep: {seconds: {{ int $values.preStopSleepSeconds }}}
{{- end }}
{{- with $values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  {{- with include "noonmark.tlsMounts" .root }}{{ . | trim | nindent 2 }}{{ end }}
  {{- if eq .component "worker" }}
  {{- range $values.jobSecrets }}
  - name: {{ printf "jobs-%s" (sha256sum .namespace | trunc 12) }}
    mountPath: /etc/noonmark/secrets/{{ .namespace }}
    readOnly: true
  {{- end }}
  {{- end }}
  {{- with $values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Allows one eviction of a part at a time. Pods that are not ready never block the drain of a node. */}}
{{- define "noonmark.pdb" -}}
{{- $values := include "noonmark.part" . | fromYaml }}
{{- $part := merge (dict "values" $values) . }}
{{- if and $values.podDisruptionBudget.enabled (gt (include "noonmark.mostReplicas" $part | int) 1) }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "noonmark.partName" $part }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "noonmark.partLabels" $part | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "noonmark.partSelector" $part | nindent 6 }}
{{- end }}
{{- end }}

{{/* A container of the migration; takes root, values, and step with its name and args. */}}
{{- define "noonmark.migrationStep" -}}
- name: {{ .step.name }}
  args:
    {{- toYaml .step.args | nindent 4 }}
  {{- include "noonmark.commandContainer" (merge (dict "resources" .root.Values.migrations.resources) .) | nindent 2 }}
{{- end }}

{{/* A container that runs a command and ends; takes root, component, values and resources. */}}
{{- define "noonmark.commandContainer" -}}
{{- $d := .root.Values.defaults -}}
image: {{ include "noonmark.image" . | quote }}
imagePullPolicy: {{ dig "pullPolicy" .root.Values.image.pullPolicy (default dict .values.image) }}
securityContext:
  {{- include "noonmark.containerSecurity" . | nindent 2 }}
env:
  {{- include "noonmark.env" . | nindent 2 }}
  {{- with $d.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $d.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .resources | default $d.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  {{- with include "noonmark.tlsMounts" .root }}{{ . | trim | nindent 2 }}{{ end }}
  {{- with $d.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Volumes and placement of a pod that runs commands and ends; takes the root, which can have a tmpSizeLimit. */}}
{{- define "noonmark.commandPodEnd" -}}
{{- $d := .Values.defaults -}}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: {{ .tmpSizeLimit | default $d.tmpSizeLimit | quote }}}
  {{- with include "noonmark.tlsVolumes" . }}{{ . | trim | nindent 2 }}{{ end }}
  {{- with $d.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $d.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- range $name := list "nodeSelector" "tolerations" "affinity" }}
{{- with get $d $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* As noonmark.migrationStep, for the containers of `helm test`. */}}
{{- define "noonmark.testContainer" -}}
image: {{ include "noonmark.image" . | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- include "noonmark.containerSecurity" . | nindent 2 }}
{{- with .root.Values.tests.resources | default .root.Values.defaults.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
{{- end }}
