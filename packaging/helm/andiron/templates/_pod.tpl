{{- /* SPDX-License-Identifier: Apache-2.0 */}}
{{- /* What the pods have alike: agents and gateway, and the pod of `helm test` in part. Keys of a
       pod or a container, without indent; nothing where there are none. */}}

{{- define "andiron.pullSecrets" }}
{{- $global := dig "image" dict (default dict .Values.global) }}
{{- $all := list }}
{{- range concat (default list .Values.image.pullSecrets) (default list $global.pullSecrets) (default list (default dict .Values.global).imagePullSecrets) }}
{{- $all = append $all (ternary . (dict "name" .) (kindIs "map" .)) }}
{{- end }}
{{- with uniq $all }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "andiron.program" -}}
{{- $global := dig "image" dict (default dict .Values.global) -}}
image: {{ include "andiron.image" . | quote }}
imagePullPolicy: {{ default (default .Values.image.pullPolicy (default dict .Values.global).imagePullPolicy) $global.pullPolicy }}
{{- end }}

{{- /* The program as an agent; more arguments may follow. */}}
{{- define "andiron.agent" -}}
{{ include "andiron.program" . }}
args:
  - run
  # A changed ConfigMap is taken without a restart.
  - --watch
  - /etc/andiron/config.alloy
  - --status=/run/andiron/status
  # What is held is delivered at SIGTERM; what is not stays in the spool.
  - --drain-deadline={{ sub (int64 .Values.controller.terminationGracePeriodSeconds) 5 }}s
  - --log-level={{ .Values.logLevel }}
  - --log-format={{ .Values.logFormat }}
{{- end }}

{{- define "andiron.mounts" -}}
- name: config
  mountPath: /etc/andiron
  readOnly: true
- name: run
  mountPath: /run/andiron
- name: spool
  mountPath: /var/lib/andiron
{{- end }}

{{- /* Of the name of a ConfigMap. */}}
{{- define "andiron.volumes" -}}
- name: config
  configMap:
    name: {{ . | quote }}
- name: run
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
{{- end }}

{{- /* Of `controller` or `gateway`: on which nodes. */}}
{{- define "andiron.placement" }}
{{- range $key := list "nodeSelector" "affinity" "tolerations" }}
{{- with get $ $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
