{{/* Ports on which services call each other. */}}
{{- define "writ.ports" -}}
supervisor: 50051
spawn-budget: 50052
execution-meter: 50053
tool-gateway: 50054
agent-worker: 50055
{{- end -}}

{{/* What a service shows to NATS, and whom it believes, unless env says otherwise. */}}
{{- define "writ.natsTls" -}}
WRIT_NATS_CA_FILE: /etc/writ/tls/ca.crt
WRIT_NATS_CERT_FILE: /etc/writ/tls/tls.crt
WRIT_NATS_KEY_FILE: /etc/writ/tls/tls.key
{{- end -}}

{{/* SPAWN_BUDGET for spawn-budget. */}}
{{- define "writ.variable" -}}
{{ . | upper | replace "-" "_" }}
{{- end -}}

{{/* What all pods of the release have. */}}
{{- define "writ.common" -}}
app.kubernetes.io/name: writ
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* What every object of the release says of itself besides. */}}
{{- define "writ.release" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* What the objects of a service say of themselves: (dict "root" $ "service" name). */}}
{{- define "writ.labels" -}}
{{ include "writ.selector" . }}
{{ include "writ.release" .root }}
{{- end -}}

{{/* What the pods of a service have: (dict "root" $ "service" name). */}}
{{- define "writ.selector" -}}
{{ include "writ.common" .root }}
app.kubernetes.io/component: {{ .service }}
{{- end -}}

{{/* A NetworkPolicy rule's destination, from its values. */}}
{{- define "writ.egress" -}}
{{- if .to }}
- to: {{ toYaml .to | nindent 4 }}
  ports:
    {{- range .ports }}
    - { protocol: TCP, port: {{ . }} }
    {{- end }}
{{- end }}
{{- end -}}

{{/* The ConfigMap with a service's files; empty for none: (dict "root" $ "service" name). */}}
{{- define "writ.files" -}}
{{- $of := dict "supervisor" .root.Values.files.agents "execution-meter" .root.Values.files.models "tool-gateway" .root.Values.files.tools -}}
{{- get $of .service -}}
{{- end -}}
