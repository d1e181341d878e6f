{{- /* SPDX-License-Identifier: Apache-2.0 */}}
{{- /* Values as the templates want them. By a null Helm takes a default away: a section and a value
       that cannot be missing get the chart's default back. What cannot be is said, a line each.
       files/defaults.json has the defaults. Behind a name there, "optional" is what may be missing,
       and "strings" is a map of those. */}}

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
{{ $path }} is {{ include "andiron.otherKind" (dict "value" $value "kind" (kindOf $default) "path" $path) }}.
{{- else if eq $kind "strings" }}
{{- range $name, $of := $value }}
{{- if kindIs "invalid" $of }}{{ $_ := unset $value $name }}{{ end }}
{{- include "andiron.otherThanText" (dict "path" $path "name" $name "value" $of) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* What a value is in place of a list or a map, and what to write. Not even an empty one may pass:
       the agent would run without its limits, or with all rights. */}}
{{- define "andiron.otherKind" -}}
{{- $list := eq .kind "slice" }}
{{- $want := ternary "a list" "a map" $list }}
{{- if or (not .value) (not (has (kindOf .value) (list "map" "slice" "string"))) }}{{ toJson .value }}: write {{ $want }}, or leave it out
{{- else if kindIs "slice" .value }}a list: write a map, without "-" before its keys
{{- else if kindIs "map" .value }}a map: write a list, each item behind "-"
{{- else if and $list (regexMatch "^[^\\s:]+$" .value) }}text: write a list, [{{ .value }}], or --set {{ .path }}={{ printf "{%s}" .value }}
{{- else }}text: write {{ $want }}{{ if $list }}, each item behind "-"{{ end }}, without "|" or quotes before it
{{- end }}
{{- end }}

{{- /* Nothing for text. A number is not made into it: YAML has read 0755 as 493, and 1.10 as 1.1. */}}
{{- define "andiron.otherThanText" }}
{{- if not (or (kindIs "string" .value) (kindIs "invalid" .value)) }}
{{ .path }} has {{ toJson .value }} as the value of {{ quote .name }}, which must be text: write it in quotes, or give it by --set-string.
{{- end }}
{{- end }}
