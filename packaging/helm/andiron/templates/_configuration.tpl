{{- /* SPDX-License-Identifier: Apache-2.0 */}}
{{- /* The configuration that the values describe. What comes from values stands in it as a JSON
       string, which is a string of this syntax too; toJson would write "<" as an escape. */}}

{{- define "andiron.headerName" -}}
{{- printf "header_%s" (include "andiron.labelName" .) }}
{{- end }}

{{- /* Values of headers, which are nobody's to see. */}}
{{- define "andiron.headerFiles" }}
{{- range $name, $key := .Values.backend.secret.headers }}

local.file {{ include "andiron.headerName" $name | quote }} {
  filename  = {{ printf "/etc/andiron-credentials/%s" $key | toRawJson }}
  is_secret = true
}
{{- end }}
{{- end }}

{{- define "andiron.endpoint" }}
{{- $b := .Values.backend }}
{{- $url := include "andiron.url" . }}
  endpoint {
    url = {{ toRawJson $url }}
{{- if and $b.parca.address $b.parca.insecure (not (contains "://" $url)) }}
    insecure = true
{{- end }}
{{- $headers := merge (dict) (default (dict) $b.headers) }}
{{- with $b.pyroscope.tenantID }}{{ $_ := set $headers "X-Scope-OrgID" (toString (ternary . (int64 .) (kindIs "string" .))) }}{{ end }}
{{- with $headers }}
    headers = {
{{- range $name, $value := . }}
      {{ toRawJson $name }} = {{ toRawJson $value }},
{{- end }}
    }
{{- end }}
{{- with $b.secret.headers }}
    http_headers = {
{{- range $name, $_ := . }}
      {{ toRawJson $name }} = [string.trim_space(local.file.{{ include "andiron.headerName" $name }}.content)],
{{- end }}
    }
{{- end }}
{{- with $b.secret }}
{{- if and .name .tokenKey }}
    bearer_token_file = {{ printf "/etc/andiron-credentials/%s" .tokenKey | toRawJson }}
{{- else if and .name .usernameKey }}

    basic_auth {
      username      = sys.env("BACKEND_USERNAME")
      password_file = {{ printf "/etc/andiron-credentials/%s" .passwordKey | toRawJson }}
    }
{{- end }}
{{- end }}
{{- with $b.tls }}
{{- if or .secret .serverName }}

    tls_config {
{{- if and .secret .caKey }}
      ca_file = {{ printf "/etc/andiron-tls/%s" .caKey | toRawJson }}
{{- end }}
{{- if and .secret .certKey }}
      cert_file = {{ printf "/etc/andiron-tls/%s" .certKey | toRawJson }}
      key_file = {{ printf "/etc/andiron-tls/%s" .privateKey | toRawJson }}
{{- end }}
{{- with .serverName }}
      server_name = {{ toRawJson . }}
{{- end }}
    }
{{- end }}
{{- end }}
  }
{{- end }}

{{- /* Of a list: how large, and the values. */}}
{{- define "andiron.spool" }}
  // Kept until the server has it, over outages and restarts.
  spool {
    directory = "/var/lib/andiron/{{ index . 0 }}"
    max_bytes = {{ include "andiron.bytes" (index . 1) }}
  }
{{- end }}

{{- define "andiron.status" }}
{{- $v := .Values }}

// Metrics, and the probes of the pod.
status.http {
  listen_address = sys.env("POD_IP")
  listen_port    = {{ int64 $v.listenPort }}
}
{{- end }}

{{- define "andiron.configuration" -}}
{{- $v := .Values }}
{{- $writer := ternary "pyroscope.write" (include "andiron.writer" .) $v.gateway.enabled -}}
// The pods of this node: NODE_NAME is set by the DaemonSet.
discovery.kubernetes "pods" {
  role        = "pod"
  annotations = [{{ $v.discovery.annotation | toRawJson }}, "pyroscope.io/service_name"]
{{- with $v.discovery.namespaces }}

  namespaces {
    names = {{ toRawJson . | replace "," ", " }}
  }
{{- end }}
}

discovery.relabel "pods" {
  targets = discovery.kubernetes.pods.targets

{{- $annotation := printf "__meta_kubernetes_pod_annotation_%s" (include "andiron.labelName" $v.discovery.annotation) }}
{{- if eq $v.discovery.targetingScheme "annotation" }}

  rule {
    source_labels = [{{ $annotation | toRawJson }}]
    regex         = "true"
    action        = "keep"
  }
{{- else }}

  rule {
    source_labels = [{{ $annotation | toRawJson }}]
    regex         = "false"
    action        = "drop"
  }
{{- end }}
{{- with $v.discovery.excludeNamespaces }}
  rule {
    source_labels = ["__meta_kubernetes_namespace"]
    regex         = {{ join "|" . | toRawJson }}
    action        = "drop"
  }
{{- end }}
  rule {
    source_labels = ["__meta_kubernetes_namespace"]
    target_label  = "namespace"
  }
  rule {
    source_labels = ["__meta_kubernetes_pod_name"]
    target_label  = "pod"
  }
  rule {
    source_labels = ["__meta_kubernetes_pod_container_name"]
    target_label  = "container"
  }
{{- range $v.discovery.labels }}
  rule {
    source_labels = [{{ printf "__meta_kubernetes_pod_label_%s" (include "andiron.labelName" .) | toRawJson }}]
    target_label  = {{ include "andiron.labelName" . | toRawJson }}
  }
{{- end }}
}

{{- $runtimes := list }}
{{- range $v.profiling.languages }}
{{- $runtimes = append $runtimes (get (dict "java" "jvm" "javascript" "v8" "python" "python") .) }}
{{- end }}

pyroscope.ebpf "pods" {
  forward_to       = [{{ $writer }}.server.receiver]
  targets          = discovery.relabel.pods.output
  sample_rate      = {{ int64 $v.profiling.sampleRate }}
  collect_interval = {{ toRawJson $v.profiling.collectInterval }}
  runtimes         = {{ toRawJson $runtimes | replace "," ", " }}
  demangle         = {{ toRawJson $v.profiling.demangle }}
  kernel_frames    = {{ $v.profiling.kernelFrames }}
  pid_label        = {{ default false $v.profiling.pidLabel }}
}

{{- if not $v.gateway.enabled }}
{{- include "andiron.headerFiles" . }}
{{- end }}
{{- if $v.receive.enabled }}

// What programs push of themselves.
pyroscope.receive_http "sdks" {
  http {
    listen_address = sys.env("POD_IP")
    listen_port    = {{ int64 $v.receive.port }}
  }
  forward_to = [{{ $writer }}.server.receiver]
}
{{- end }}

{{ $writer }} "server" {
{{- if $v.gateway.enabled }}
  endpoint {
    url = {{ printf "http://%s.%s.svc:%d" (include "andiron.gatewayName" .) (include "andiron.gatewayNamespace" .) (int64 $v.gateway.port) | toRawJson }}
  }
{{- else }}
{{- include "andiron.endpoint" . }}
{{- end }}
  external_labels = {
    "node" = sys.env("NODE_NAME"),
{{- range $name, $value := $v.backend.externalLabels }}
    {{ toRawJson $name }} = {{ toRawJson $value }},
{{- end }}
  }
{{ include "andiron.spool" (list $writer $v.spool.size) }}
}
{{- include "andiron.status" . }}
{{ end }}

{{- /* Of the gateway. Labels are those that agents gave. */}}
{{- define "andiron.gatewayConfiguration" -}}
// What the agents take.
pyroscope.receive_http "agents" {
  http {
    listen_address = sys.env("POD_IP")
    listen_port    = {{ int64 .Values.gateway.port }}
  }
  forward_to = [{{ include "andiron.writer" . }}.server.receiver]
}
{{- include "andiron.headerFiles" . }}

{{ include "andiron.writer" . }} "server" {
{{- include "andiron.endpoint" . }}
{{ include "andiron.spool" (list (include "andiron.writer" .) .Values.gateway.spool.size) }}
}
{{- include "andiron.status" . }}
{{ end }}
