{{/* Ports on which services call each other. */}}
{{- define "writ.ports" -}}
supervisor: 50051
spawn-budget: 50052
execution-meter: 50053
tool-gateway: 50054
agent-worker: 50055
{{- end -}}

{{/* Client certificate and authority for NATS, unless env sets them. */}}
{{- define "writ.natsTls" -}}
WRIT_NATS_CA_FILE: /etc/writ/tls/ca.crt
WRIT_NATS_CERT_FILE: /etc/writ/tls/tls.crt
WRIT_NATS_KEY_FILE: /etc/writ/tls/tls.key
{{- end -}}

{{/* SPAWN_BUDGET for spawn-budget. */}}
{{- define "writ.variable" -}}
{{ . | upper | replace "-" "_" }}
{{- end -}}

{{/* Labels of all pods of the release. */}}
{{- define "writ.common" -}}
app.kubernetes.io/name: writ
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Common labels of every object of the release. */}}
{{- define "writ.release" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Labels of the objects of a service: (dict "root" $ "service" name). */}}
{{- define "writ.labels" -}}
{{ include "writ.selector" . }}
{{ include "writ.release" .root }}
{{- end -}}

{{/* Labels of the pods of a service: (dict "root" $ "service" name). */}}
{{- define "writ.selector" -}}
{{ include "writ.common" .root }}
app.kubernetes.io/component: {{ .service }}
{{- end -}}

{{/* Destination of a NetworkPolicy rule, from its values. */}}
{{- define "writ.egress" -}}
{{- if .to }}
- to: {{ toYaml .to | nindent 4 }}
  ports:
    {{- range .ports }}
    - { protocol: TCP, port: {{ . }} }
    {{- end }}
{{- end }}
{{- end -}}

{{/* ConfigMap with the files of a service; empty if none: (dict "root" $ "service" name). */}}
{{- define "writ.files" -}}
{{- $of := dict "supervisor" .root.Values.files.agents "execution-meter" .root.Values.files.models "tool-gateway" .root.Values.files.tools -}}
{{- get $of .service -}}
{{- end -}}
