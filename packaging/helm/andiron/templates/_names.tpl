{{- /* SPDX-License-Identifier: Apache-2.0 */}}
{{- /* How things are called, and quantities as bytes. Names are quoted wherever they are written:
       one of digits alone would be a number. */}}

{{- define "andiron.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* A release's name may have dots, and that of a Service none. */}}
{{- define "andiron.fullname" -}}
{{- $name := include "andiron.name" . }}
{{- $full := printf "%s-%s" .Release.Name $name }}
{{- if contains $name .Release.Name }}{{ $full = .Release.Name }}{{ end }}
{{- default $full .Values.fullnameOverride | replace "." "-" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "andiron.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- /* Of cluster-wide objects: two namespaces may have a release of one name. */}}
{{- define "andiron.clusterName" -}}
{{- printf "%s:%s" (include "andiron.namespace" .) (include "andiron.fullname" .) }}
{{- end }}

{{- define "andiron.serviceAccount" -}}
{{- default (include "andiron.fullname" .) .Values.serviceAccount.name }}
{{- end }}

{{- define "andiron.selectorLabels" -}}
app.kubernetes.io/name: {{ include "andiron.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "andiron.labels" -}}
{{ include "andiron.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* Of the pod of `helm test`, which neither DaemonSet nor Service may take for an agent. */}}
{{- define "andiron.testLabels" -}}
app.kubernetes.io/name: {{ printf "%s-test" (include "andiron.name" . | trunc 58 | trimSuffix "-") }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- /* name, namespace and labels of an object; more labels follow. */}}
{{- define "andiron.metadata" -}}
name: {{ include "andiron.fullname" . | quote }}
namespace: {{ include "andiron.namespace" . | quote }}
labels:
  {{- include "andiron.labels" . | nindent 2 }}
{{- end }}

{{- define "andiron.image" -}}
{{- $global := dig "image" "registry" "" (.Values.global | default dict) }}
{{- $registry := default (default .Values.image.registry (default dict .Values.global).imageRegistry) $global }}
{{- $name := .Values.image.repository }}
{{- if $registry }}{{ $name = printf "%s/%s" (trimSuffix "/" $registry) $name }}{{ end }}
{{- if .Values.image.digest }}
{{- printf "%s@sha256:%s" $name (trimPrefix "sha256:" .Values.image.digest) }}
{{- else }}
{{- printf "%s:%s" $name (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- /* "256Mi" → 268435456; nothing for what is no quantity of bytes. */}}
{{- define "andiron.bytes" -}}
{{- $text := toString . }}
{{- if kindIs "float64" . }}{{ $text = toString (int64 .) }}{{ end }}
{{- if regexMatch "^[0-9]+(\\.[0-9]+)?([KMGTP]i|[mkMGTP]|[eE][0-9]+)?$" $text }}
{{- $unit := regexFind "[A-Za-z]+$" $text }}
{{- $units := dict "" 1 "m" 0.001 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "P" 1000000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 }}
{{- mulf (float64 (trimSuffix $unit $text)) (get $units $unit) | int64 }}
{{- end }}
{{- end }}

{{- /* A name as Prometheus's discovery writes it into a label's name. */}}
{{- define "andiron.labelName" -}}
{{- regexReplaceAll "[^a-zA-Z0-9_]" . "_" }}
{{- end }}

{{- /* Ports besides that of metrics, and the Service that has them. */}}
{{- define "andiron.ports" -}}
{{- $ports := default list .Values.extraPorts }}
{{- if .Values.receive.enabled }}
{{- $ports = prepend $ports (dict "name" "receive" "port" (int64 .Values.receive.port)) }}
{{- end }}
{{- toYaml $ports }}
{{- end }}

{{- define "andiron.receiveName" -}}
{{- printf "%s-receive" (include "andiron.fullname" . | trunc 55 | trimSuffix "-") }}
{{- end }}

{{- /* The pod between agents and backend, if it is wanted. A label of its pods has this name and a
       hash, 63 characters in all. */}}
{{- define "andiron.gatewayName" -}}
{{- printf "%s-gateway" (include "andiron.fullname" . | trunc 44 | trimSuffix "-") }}
{{- end }}

{{- define "andiron.gatewayNamespace" -}}
{{- default (include "andiron.namespace" .) .Values.gateway.namespace }}
{{- end }}

{{- define "andiron.gatewaySelectorLabels" -}}
app.kubernetes.io/name: {{ printf "%s-gateway" (include "andiron.name" . | trunc 55 | trimSuffix "-") }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "andiron.gatewayMetadata" -}}
name: {{ include "andiron.gatewayName" . | quote }}
namespace: {{ include "andiron.gatewayNamespace" . | quote }}
labels:
  {{- include "andiron.labels" . | fromYaml | merge (include "andiron.gatewaySelectorLabels" . | fromYaml) | toYaml | nindent 2 }}
{{- end }}

{{- /* The writer that the backend decides: its component. Nothing with `config`. */}}
{{- define "andiron.writer" -}}
{{- $b := .Values.backend }}
{{- if $b.pyroscope.url }}pyroscope.write{{ else if $b.parca.address }}parca.write{{ else if $b.otlp.endpoint }}otlp.write{{ end }}
{{- end }}

{{- define "andiron.url" -}}
{{- $b := .Values.backend }}
{{- $b.pyroscope.url | default $b.parca.address | default $b.otlp.endpoint | default "" | trim }}
{{- end }}
