{{/* Ports on which services call each other. */}}
{{- define "writ.ports" -}}
supervisor: 50051
spawn-budget: 50052
execution-meter: 50053
tool-gateway: 50054
agent-worker: 50055
{{- if (index .Values.services "agent-proxy").enabled }}
agent-proxy: 50056
{{- end }}
{{- end -}}

{{/* The services to run: all but agent-proxy, unless it is enabled. */}}
{{- define "writ.services" -}}
{{- $proxy := index .Values.services "agent-proxy" }}
{{- if $proxy.enabled }}{{ toYaml .Values.services }}{{ else }}{{ toYaml (omit .Values.services "agent-proxy") }}{{ end }}
{{- end -}}

{{/* Values of the port of a service for programs outside of Writ; empty if it has none: (dict "root" $ "service" name). */}}
{{- define "writ.publicPort" -}}
{{- $of := dict "supervisor" .root.Values.edge "agent-proxy" .root.Values.agentProxy -}}
{{- with get $of .service }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* Base URL of the model endpoint, for those who get a run token. */}}
{{- define "writ.agentProxyUrl" -}}
{{- $scheme := empty .Values.agentProxy.tlsSecret | ternary "http" "https" -}}
{{- $inside := printf "%s://%s-agents:%v/v1" $scheme .Release.Name .Values.agentProxy.port -}}
{{- $outside := printf "https://%s/v1" .Values.agentProxy.ingress.host -}}
{{- .Values.agentProxy.url | default (.Values.agentProxy.ingress.enabled | ternary $outside $inside) -}}
{{- end -}}

{{/* Client certificate and authority for NATS, unless env sets them. */}}
{{- define "writ.natsTls" -}}
WRIT_NATS_CA_FILE: /etc/writ/tls/ca.crt
WRIT_NATS_CERT_FILE: /etc/writ/tls/tls.crt
WRIT_NATS_KEY_FILE: /etc/writ/tls/tls.key
{{- end -}}

{{/* The image, by digest if one is set. */}}
{{- define "writ.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}{{ else }}{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}{{ end -}}
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

{{/* Labels of the pod of a trial server: (dict "root" $ "server" "nats"). */}}
{{- define "writ.trialSelector" -}}
app.kubernetes.io/name: {{ .server }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end -}}

{{/* Destination of the NetworkPolicies of the services: (dict "root" $ "server" "nats" "port" 4222). */}}
{{- define "writ.trialDestination" -}}
to:
  - podSelector:
      matchLabels: {{ include "writ.trialSelector" . | nindent 8 }}
ports: [{{ .port }}]
{{- end -}}

{{/* Password variables of a trial server, from the Secrets of the services: (dict "root" $ "server" "NATS" "key" "nats-password"). */}}
{{- define "writ.trialPasswords" -}}
{{- range $name, $_ := .root.Values.services }}
{{- if not (and (eq $.server "NATS") (eq $name "agent-proxy")) }}
- name: WRIT_{{ if eq $.server "NATS" }}NATS_{{ include "writ.variable" $name }}{{ else }}{{ include "writ.variable" $name }}_DATABASE{{ end }}_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ $.root.Values.secrets.prefix }}{{ $name }}, key: {{ $.key }}{{ if eq $name "agent-proxy" }}, optional: true{{ end }} } }
{{- end }}
{{- end }}
{{- end -}}
