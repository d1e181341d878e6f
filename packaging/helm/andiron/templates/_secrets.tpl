{{- /* SPDX-License-Identifier: Apache-2.0 */}}
{{- /* The Secrets of `backend`, in the pod that speaks to it. */}}

{{- define "andiron.secretEnv" }}
{{- with .Values.backend.secret }}
{{- if and .name .usernameKey }}
- name: BACKEND_USERNAME
  valueFrom:
    secretKeyRef:
      name: {{ .name | quote }}
      key: {{ .usernameKey | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "andiron.secretMounts" }}
{{- if .Values.backend.secret.name }}
- name: credentials
  mountPath: /etc/andiron-credentials
  readOnly: true
{{- end }}
{{- if .Values.backend.tls.secret }}
- name: tls
  mountPath: /etc/andiron-tls
  readOnly: true
{{- end }}
{{- end }}

{{- define "andiron.secretVolumes" }}
{{- with .Values.backend.secret.name }}
- name: credentials
  secret:
    secretName: {{ . | quote }}
{{- end }}
{{- with .Values.backend.tls.secret }}
- name: tls
  secret:
    secretName: {{ . | quote }}
{{- end }}
{{- end }}
