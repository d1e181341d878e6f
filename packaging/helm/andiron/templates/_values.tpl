{{- /* SPDX-License-Identifier: Apache-2.0 */}}
{{- /* Values as the templates want them. By a null Helm takes a default away: a section and a value
       that cannot be missing get the chart's default back. Numbers and truth in a map of strings,
       such as annotations, become text, as Kubernetes wants them. What cannot be is said, a line
       each. files/defaults.json has the defaults. Behind a name there, "optional" is what may be
       missing, and "strings" is a map of those. */}}

{{- define "andiron.complete" -}}
{{- $values := .values }}
{{- range $row, $default := .defaults }}
{{- $key := first (splitList " " $row) }}
{{- $kind := trimPrefix $key $row | trim }}
{{- $path := printf "%s%s" $.path $key }}
{{- $value := get $values $key }}
{{- $missing := or (not (hasKey $values $key)) (kindIs "invalid" $value) }}
{{- if and $missing (or $.whole (not $kind)) (not (and (not $kind) (kindIs "map" $default))) }}
{{- $_ := set $values $key $default }}
{{- else if and $missing $kind }}
{{- $_ := unset $values $key }}
{{- else if and (not $kind) (kindIs "map" $default) }}
{{- $section := ternary dict $value $missing }}
{{- $_ := set $values $key $section }}
{{- include "andiron.complete" (dict "values" $section "defaults" $default "path" (printf "%s." $path) "whole" $missing) }}
{{- else if and $kind (ne (kindOf $value) (kindOf $default)) }}
{{- $_ := unset $values $key }}
{{- if $value }}
{{- $kinds := dict "map" "a map" "slice" "a list" }}
{{ $path }} is {{ get $kinds (kindOf $value) | default "text" }}: write {{ get $kinds (kindOf $default) }}, as it stands in a pod, without "|" or quotes before it.
{{- end }}
{{- else if eq $kind "strings" }}
{{- $strings := dict }}
{{- range $name, $of := $value }}
{{- if not (kindIs "invalid" $of) }}{{ $_ := set $strings $name (include "andiron.text" $of) }}{{ end }}
{{- if and (kindIs "float64" $of) (eq (include "andiron.text" $of) "") }}
{{ $path }} has {{ $of }} as {{ quote $name }}, a number whose digits YAML does not keep: write it in quotes.
{{- end }}
{{- end }}
{{- $_ := set $values $key $strings }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A value as text; none for a number that is not whole. */}}
{{- define "andiron.text" -}}
{{- if not (kindIs "float64" .) }}{{ toString . }}{{ else if eq (float64 (int64 .)) . }}{{ int64 . }}{{ end }}
{{- end }}
