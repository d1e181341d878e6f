{{- /* SPDX-License-Identifier: Apache-2.0 */}}
{{- /* What a schema cannot say, or not in a sentence that says what to write. All that is wrong is
       said at once. */}}

{{- /* At the head of every template: which of them Helm renders first is its own affair. */}}
{{- define "andiron.checks" -}}
{{- if not (hasKey .Values "checked") }}
{{- include "andiron.judge" . }}
{{- $_ := set .Values "checked" true }}
{{- end }}
{{- end }}

{{- define "andiron.judge" -}}
{{- $v := .Values }}
{{- $wrong := list }}

{{- range $said, $rows := include "andiron.fromOthers" . | fromYaml }}
{{- range $key, $advice := $rows }}
{{- $found := $v }}
{{- range splitList "." $key }}
{{- $found = ternary (get (ternary $found dict (kindIs "map" $found)) .) "" (kindIs "map" $found) }}
{{- end }}
{{- $names := list $key }}
{{- range $inner, $value := ternary $found dict (kindIs "map" $found) }}
{{- if hasKey $rows (printf "%s.%s" $key $inner) }}{{ $names = without $names $key }}
{{- else if not (or (kindIs "invalid" $value) (eq (toString $value) "")) }}{{ $names = append $names (printf "%s.%s" $key $inner) }}{{ end }}
{{- end }}
{{- if has $key $names }}{{ $names = list $key }}{{ end }}
{{- if not (or (kindIs "invalid" $found) (eq (toString $found) "") (and (eq $key "controller.type") (eq (toString $found) "daemonset"))) }}
{{- range $names }}
{{- $wrong = append $wrong (printf "%s %s: %s." . $said $advice) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- with include "andiron.complete" (dict "values" $v "defaults" (.Files.Get "files/defaults.json" | fromJson) "path" "" "whole" false) | trim }}
{{- $wrong = append $wrong . }}
{{- end }}

{{- $b := $v.backend }}
{{- $backends := list }}
{{- if $b.pyroscope.url }}{{ $backends = append $backends "backend.pyroscope.url" }}{{ end }}
{{- if $b.parca.address }}{{ $backends = append $backends "backend.parca.address" }}{{ end }}
{{- if $b.otlp.endpoint }}{{ $backends = append $backends "backend.otlp.endpoint" }}{{ end }}
{{- if gt (len $backends) 1 }}
{{- $wrong = append $wrong (printf "%s are given: keep one of them; a configuration with several writers is written as \"config\"." (join " and " $backends)) }}
{{- else if and (not $backends) (not $v.config) (not $wrong) }}
{{- $wrong = append $wrong "No backend is given: write backend.pyroscope.url, for example \"http://pyroscope.monitoring.svc.cluster.local:4040\", or backend.parca.address, or backend.otlp.endpoint." }}
{{- end }}
{{- range $name, $example := dict "pyroscope.url" "4040" "otlp.endpoint" "4317" }}
{{- $url := get (get $b (first (splitList "." $name))) (last (splitList "." $name)) }}
{{- if and $url (not (regexMatch "^https?://[^/]" (trim $url))) }}
{{- $host := regexReplaceAll "^[a-zA-Z0-9+.-]*://" $url "" | trimPrefix "/" | default (printf "host:%s" $example) }}
{{- $wrong = append $wrong (printf "backend.%s is %q: write it with its scheme, \"http://%s\" or \"https://%s\"." $name $url $host $host) }}
{{- else if regexMatch "\\s" (trim (default "" $url)) }}
{{- $wrong = append $wrong (printf "backend.%s is %q, and a URL holds no space: take it out." $name $url) }}
{{- end }}
{{- end }}
{{- if regexMatch "^[a-z+]*://[^/]*@" (include "andiron.url" .) }}
{{- $wrong = append $wrong "The backend's URL has a user name or a password in it, which everybody may read there: write them into a Secret that backend.secret names." }}
{{- end }}
{{- with $b.parca.address }}
{{- if not (regexMatch "^(https?://)?[^/\\s]+:[0-9]+/?$" (trim .)) }}
{{- $wrong = append $wrong (printf "backend.parca.address is %q: write host and port, \"parca.parca.svc.cluster.local:7070\"." .) }}
{{- end }}
{{- end }}
{{- if and $b.parca.insecure (not $b.parca.address) }}
{{- $wrong = append $wrong "backend.parca.insecure is true, but there is no backend.parca.address: write that, or leave insecure out." }}
{{- end }}
{{- if and $b.parca.insecure (hasPrefix "https://" (default "" $b.parca.address)) }}
{{- $wrong = append $wrong "backend.parca.address begins with \"https://\" and backend.parca.insecure is true: leave one of them out." }}
{{- end }}
{{- if and $b.pyroscope.tenantID (not $b.pyroscope.url) }}
{{- $wrong = append $wrong "backend.pyroscope.tenantID is given, but no backend.pyroscope.url: write that, or for another backend the tenant's header in backend.headers." }}
{{- end }}

{{- with $b.secret }}
{{- if and .name (not $v.config) (not .tokenKey) (not .headers) (not (and .usernameKey .passwordKey)) }}
{{- $wrong = append $wrong (printf "backend.secret.name is %q: write as backend.secret.tokenKey which of its keys has a token, as usernameKey and passwordKey which have user name and password, or as headers which have values of headers." .name) }}
{{- else if ne (empty .usernameKey) (empty .passwordKey) }}
{{- $wrong = append $wrong "backend.secret has one of usernameKey and passwordKey: write both." }}
{{- end }}
{{- if and .tokenKey (or .usernameKey .passwordKey) }}
{{- $wrong = append $wrong "backend.secret has tokenKey and a key for basic authentication: keep one of the two." }}
{{- end }}
{{- if and (not .name) (or .tokenKey .usernameKey .passwordKey .headers) }}
{{- $wrong = append $wrong "backend.secret names a key, but no Secret: write the Secret's name as backend.secret.name." }}
{{- end }}
{{- end }}
{{- with $b.tls }}
{{- if and (or .secret .serverName) (or (hasPrefix "http://" (include "andiron.url" $)) $b.parca.insecure) }}
{{- $wrong = append $wrong "backend.tls is given, but the backend is spoken to in plain text: write its URL with \"https://\", or leave backend.tls out." }}
{{- end }}
{{- if ne (empty .certKey) (empty .privateKey) }}
{{- $wrong = append $wrong "backend.tls has one of certKey and privateKey: a certificate and its key go together; write both." }}
{{- end }}
{{- if and .certKey (not .secret) }}
{{- $wrong = append $wrong "backend.tls names a key, but no Secret: write the Secret's name as backend.tls.secret." }}
{{- end }}
{{- end }}

{{- $same := dict }}
{{- range $section := tuple (dict "name" "backend.headers" "names" (keys (default dict $b.headers))) (dict "name" "backend.pyroscope.tenantID" "names" (ternary (list "X-Scope-OrgID") list (not (empty $b.pyroscope.tenantID)))) (dict "name" "backend.secret" "names" (ternary (list "Authorization") list (not (empty (or $b.secret.tokenKey $b.secret.usernameKey))))) (dict "name" "backend.secret.headers" "names" (keys (default dict $b.secret.headers))) }}
{{- range $name := $section.names | sortAlpha }}
{{- $key := include "andiron.headerName" $name | lower }}
{{- if not (regexMatch "^[a-zA-Z0-9!#$%&'*+.^_`|~-]+$" $name) }}
{{- $wrong = append $wrong (printf "%s has %q, which is no name of a header: write it as in \"X-Api-Key\", and its value behind it." $section.name $name) }}
{{- else if hasKey $same $key }}
{{- $wrong = append $wrong (printf "%s gives the header %q, and %s: names are the same whatever their case, and whether \"-\" or \"_\" stands in them; keep one of the two." $section.name $name (get $same $key)) }}
{{- end }}
{{- $_ := set $same $key (printf "%s gives %q" $section.name $name) }}
{{- end }}
{{- end }}
{{- $keys := dict "backend.secret.tokenKey" $b.secret.tokenKey "backend.secret.usernameKey" $b.secret.usernameKey "backend.secret.passwordKey" $b.secret.passwordKey "backend.tls.caKey" $b.tls.caKey "backend.tls.certKey" $b.tls.certKey "backend.tls.privateKey" $b.tls.privateKey }}
{{- range $name, $key := default dict $b.secret.headers }}
{{- $_ := set $keys (printf "The key of backend.secret.headers %q" $name) $key }}
{{- end }}
{{- range $value, $key := $keys }}
{{- if and $key (not (regexMatch "^[-._a-zA-Z0-9]+$" $key)) }}
{{- $wrong = append $wrong (printf "%s is %q, which no Secret has: write the key's name, such as \"token\"." $value $key) }}
{{- end }}
{{- end }}

{{- range tuple "namespace" "pod" "container" "node" "service_name" }}
{{- if hasKey (default dict $b.externalLabels) . }}
{{- $wrong = append $wrong (printf "backend.externalLabels has %q, which would take the place of each profile's own: give it another name." .) }}
{{- end }}
{{- end }}

{{- $taken := dict "namespace" "the chart" "pod" "the chart" "container" "the chart" "node" "the chart" }}
{{- range $name := $v.discovery.labels }}
{{- $label := include "andiron.labelName" $name }}
{{- with get $taken $label }}
{{- $wrong = append $wrong (printf "discovery.labels: %q would be kept as %q, which %s has already: leave it out, or write a configuration of your own as \"config\"." $name $label .) }}
{{- end }}
{{- if regexMatch "^[0-9]" $label }}
{{- $wrong = append $wrong (printf "discovery.labels: %q begins with a digit, as no label of a profile may: leave it out." $name) }}
{{- end }}
{{- $_ := set $taken $label (printf "%q" $name) }}
{{- end }}
{{- range concat (default list $v.discovery.namespaces) (default list $v.discovery.excludeNamespaces) (default list $v.rbac.namespaces) }}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" .) }}
{{- $wrong = append $wrong (printf "%q is no name of a namespace: write whole names, one an item." .) }}
{{- end }}
{{- end }}
{{- range $v.discovery.namespaces }}
{{- if has . (default list $v.discovery.excludeNamespaces) }}
{{- $wrong = append $wrong (printf "The namespace %q stands in discovery.namespaces and in discovery.excludeNamespaces: keep it in one of them." .) }}
{{- end }}
{{- end }}

{{- if $v.config }}
{{- $both := $backends }}
{{- range tuple "namespaces" "excludeNamespaces" "labels" }}
{{- if get $v.discovery . }}{{ $both = append $both (printf "discovery.%s" .) }}{{ end }}
{{- end }}
{{- if eq $v.discovery.targetingScheme "annotation" }}{{ $both = append $both "discovery.targetingScheme" }}{{ end }}
{{- range tuple "headers" "externalLabels" }}
{{- if get $b . }}{{ $both = append $both (printf "backend.%s" .) }}{{ end }}
{{- end }}
{{- if $b.secret.headers }}{{ $both = append $both "backend.secret.headers" }}{{ end }}
{{- if $both }}
{{- $wrong = append $wrong (printf "\"config\" is taken as it is, so %s would have no effect: write it into the configuration, or leave \"config\" out." (join " and " $both)) }}
{{- end }}
{{- if and (or $v.readinessProbe $v.livenessProbe $v.service.enabled) (not (regexMatch "(?m)^\\s*status\\.http\\s*\\{" $v.config)) }}
{{- $wrong = append $wrong "\"config\" has no block status.http, so nothing would answer the probes: write 'status.http { listen_address = sys.env(\"POD_IP\") }' into it, or set readinessProbe and livenessProbe to null and service.enabled to false." }}
{{- end }}
{{- if and $v.networkPolicy.enabled (not $v.networkPolicy.egress) }}
{{- $wrong = append $wrong "networkPolicy.enabled is true, and \"config\" says where profiles go: write as networkPolicy.egress what the agents may reach, the API server and DNS among it." }}
{{- end }}
{{- if $v.receive.enabled }}
{{- $wrong = append $wrong "receive.enabled is true, and \"config\" is taken as it is: write pyroscope.receive_http there and its port as \"extraPorts\", or leave \"config\" out." }}
{{- end }}
{{- else if $v.rbac.namespaces }}
{{- $wrong = append $wrong "rbac.namespaces goes with \"config\": write the namespaces as discovery.namespaces, which decides the rights too." }}
{{- end }}

{{- $spool := include "andiron.bytes" $v.spool.size }}
{{- if not $spool }}
{{- $wrong = append $wrong (printf "spool.size is %q: write a number of bytes such as \"256Mi\"." (toString $v.spool.size)) }}
{{- else if lt (int64 $spool) 8388608 }}
{{- $wrong = append $wrong (printf "spool.size is %q: write at least \"8Mi\"." (toString $v.spool.size)) }}
{{- end }}
{{- if not (regexMatch "^/([^/.][^/]*/?)+$" $v.spool.path) }}
{{- $wrong = append $wrong (printf "spool.path is %q: write a folder of the node from its root on, such as \"/var/lib/andiron\"." $v.spool.path) }}
{{- end }}

{{- $places := list }}
{{- $volumes := list }}
{{- range printf "%s%s" (include "andiron.mounts" .) (ternary "" (include "andiron.secretMounts" .) $v.gateway.enabled) | fromYamlArray }}
{{- $places = append $places .mountPath }}
{{- $volumes = append $volumes .name }}
{{- end }}
{{- range $v.controller.volumes.extra }}
{{- if has .name $volumes }}
{{- $wrong = append $wrong (printf "controller.volumes.extra has %q, as a volume of the chart is called: give it another name, in mounts.extra too." .name) }}
{{- end }}
{{- end }}
{{- range concat (default list $v.controller.initContainers) (default list $v.controller.extraContainers) }}
{{- if eq .name "andiron" }}
{{- $wrong = append $wrong "A container of controller.initContainers or extraContainers is called \"andiron\", as the agent's own: give it another name." }}
{{- end }}
{{- end }}

{{- range $of, $env := dict "extraEnv" $v.extraEnv "gateway.extraEnv" $v.gateway.extraEnv }}
{{- $agent := eq $of "extraEnv" }}
{{- $own := ternary (list "NODE_NAME" "POD_IP") (list "POD_IP") $agent }}
{{- if and (include "andiron.secretEnv" $) (not (and $agent $v.gateway.enabled)) }}{{ $own = append $own "BACKEND_USERNAME" }}{{ end }}
{{- $seen := list }}
{{- range $env }}
{{- $name := toString .name }}
{{- if or (has $name $own) (has $name $seen) }}
{{- $wrong = append $wrong (printf "%s has %q, which %s: leave it out." $of $name (ternary "the chart sets itself" "stands there already" (has $name $own))) }}
{{- end }}
{{- $seen = append $seen $name }}
{{- with include "andiron.otherThanText" (dict "path" $of "name" $name "value" .value) | trim }}{{ $wrong = append $wrong . }}{{ end }}
{{- end }}
{{- end }}
{{- range $v.controller.volumes.extra }}{{ $volumes = append $volumes .name }}{{ end }}
{{- range $v.mounts.extra }}
{{- if has (trimSuffix "/" (toString .mountPath)) $places }}
{{- $wrong = append $wrong (printf "mounts.extra has %q, where something is mounted already: write another mountPath." .mountPath) }}
{{- end }}
{{- $places = append $places (trimSuffix "/" (toString .mountPath)) }}
{{- if not (has .name $volumes) }}
{{- $wrong = append $wrong (printf "mounts.extra has %q, and no volume is called so: write one of that name into controller.volumes.extra." (toString .name)) }}
{{- end }}
{{- end }}

{{- $names := list "http" }}
{{- $ports := list (int64 $v.listenPort) }}
{{- range include "andiron.ports" . | fromYamlArray }}
{{- $port := int64 (default .port .targetPort) }}
{{- if has .name $names }}
{{- $wrong = append $wrong (printf "Two ports are called %q: give that of extraPorts another name." .name) }}
{{- end }}
{{- if has $port $ports }}
{{- $wrong = append $wrong (printf "Port %d, that of %q, is taken: give listenPort, receive.port and each of extraPorts one of its own." $port .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- $ports = append $ports $port }}
{{- end }}

{{- $listens := dict "listenPort" $v.listenPort }}
{{- if $v.receive.enabled }}{{ $_ := set $listens "receive.port" $v.receive.port }}{{ end }}
{{- range default list $v.extraPorts }}
{{- $_ := set $listens (printf "extraPorts %q" .name) (default .port .targetPort) }}
{{- end }}
{{- $sysctls := dig "sysctls" list (default dict (default (dig "podSecurityContext" dict (default dict $v.global)) $v.controller.podSecurityContext)) }}
{{- $low := contains "net.ipv4.ip_unprivileged_port_start" (toJson $sysctls) }}
{{- if $v.gateway.enabled }}{{ $_ := set $listens "gateway.port" $v.gateway.port }}{{ end }}
{{- range $name, $port := $listens }}
{{- if and (lt (int64 $port) 1024) (or (not $low) (eq $name "gateway.port")) }}
{{- $wrong = append $wrong (printf "%s is %d, and a port below 1024 needs a capability that no agent has: write 1024 or more." $name (int64 $port)) }}
{{- end }}
{{- if and $v.controller.hostNetwork (ne $name "gateway.port") (has (toString (int64 $port)) (list "10248" "10249" "10250" "10255" "10256")) }}
{{- $wrong = append $wrong (printf "%s is %d and controller.hostNetwork true, but kubelet and kube-proxy listen there on every node: write another port." $name (int64 $port)) }}
{{- end }}
{{- end }}

{{- with $v.gateway }}
{{- if and .enabled $v.config }}
{{- $wrong = append $wrong "gateway.enabled is true, and the agents' configuration is taken from \"config\": write there where it sends to and install the gateway as a release of its own, or leave \"config\" out." }}
{{- end }}
{{- if and (not .enabled) .namespace }}
{{- $wrong = append $wrong "gateway.namespace is given, but gateway.enabled is false: set that to true." }}
{{- end }}
{{- if and (not .spool.persistent) .spool.storageClassName }}
{{- $wrong = append $wrong "gateway.spool.storageClassName is given, but gateway.spool.persistent is false: set that to true." }}
{{- end }}
{{- if and .enabled (eq (int64 .port) (int64 $v.listenPort)) }}
{{- $wrong = append $wrong (printf "gateway.port and listenPort are both %d: give one of them another." (int64 .port)) }}
{{- end }}
{{- $spool := include "andiron.bytes" .spool.size }}
{{- if not $spool }}
{{- $wrong = append $wrong (printf "gateway.spool.size is %q: write a number of bytes such as \"1Gi\"." (toString .spool.size)) }}
{{- else if lt (int64 $spool) 8388608 }}
{{- $wrong = append $wrong (printf "gateway.spool.size is %q: write at least \"8Mi\"." (toString .spool.size)) }}
{{- end }}
{{- end }}

{{- range $path, $resources := dict "resources" $v.resources "gateway.resources" $v.gateway.resources }}
{{- range $name := list "limits" "requests" }}
{{- $value := get (default dict $resources) $name }}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value) (not (hasKey (default dict $resources) $name))) }}
{{- $full := printf "%s.%s" $path $name }}
{{- $wrong = append $wrong (printf "%s is %s." $full (include "andiron.otherKind" (dict "value" $value "kind" "map" "path" $full))) }}
{{- end }}
{{- end }}
{{- end }}
{{- $limits := get (default dict $v.resources) "limits" }}
{{- $limit := get (ternary $limits dict (kindIs "map" $limits)) "memory" }}
{{- $bytes := include "andiron.bytes" $limit }}
{{- if and (ne (toString $limit) "") (not $bytes) }}
{{- $wrong = append $wrong (printf "resources.limits.memory is %q: write a number of bytes such as \"256Mi\"." (toString $limit)) }}
{{- else if and $bytes (lt (int64 $bytes) 67108864) }}
{{- $wrong = append $wrong (printf "resources.limits.memory is %q, less than the agent needs: write at least \"64Mi\", or more where a node has many CPUs." (toString $limit)) }}
{{- end }}

{{- if and $v.controller.hostNetwork $v.networkPolicy.enabled }}
{{- $wrong = append $wrong "controller.hostNetwork and networkPolicy.enabled are true, but policies rule no pod in the node's network: leave one of them out." }}
{{- end }}
{{- if not $v.controller.hostPID }}
{{- $wrong = append $wrong "controller.hostPID is false, so the agent would see no process but its own: leave it true." }}
{{- end }}
{{- if and (eq $v.controller.dnsPolicy "None") (not (get (default dict $v.controller.dnsConfig) "nameservers")) }}
{{- $wrong = append $wrong "controller.dnsPolicy is \"None\", which needs a server: write its address into controller.dnsConfig, \"nameservers: [192.0.2.1]\", or leave dnsPolicy out." }}
{{- end }}
{{- if lt (int64 $v.controller.terminationGracePeriodSeconds) 10 }}
{{- $wrong = append $wrong (printf "controller.terminationGracePeriodSeconds is %v: write at least 10, so that there is time to deliver what is queued." $v.controller.terminationGracePeriodSeconds) }}
{{- end }}
{{- range $name, $_ := include "andiron.selectorLabels" . | fromYaml }}
{{- if hasKey (default dict $v.controller.podLabels) $name }}
{{- $wrong = append $wrong (printf "controller.podLabels has %q, by which the DaemonSet knows its pods: leave it out." $name) }}
{{- end }}
{{- end }}
{{- if and (or $v.rbac.create $v.config) (eq (include "andiron.serviceAccount" .) "default") }}
{{- $wrong = append $wrong "serviceAccount.name is \"default\", the account of every pod of the namespace that names none: write another, so that they do not get the agent's rights." }}
{{- else if and (not $v.serviceAccount.create) (not $v.serviceAccount.name) }}
{{- $wrong = append $wrong "serviceAccount.create is false: write as serviceAccount.name the account that exists." }}
{{- end }}
{{- range $monitor := tuple "serviceMonitor" "podMonitor" }}
{{- range $key := tuple "interval" "scrapeTimeout" }}
{{- $time := get (get $v $monitor) $key }}
{{- if not (regexMatch "^(0|([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$" (toString $time)) }}
{{- $wrong = append $wrong (printf "%s.%s is %q, which the Prometheus operator refuses: write whole numbers, the greatest unit first, such as \"30s\" or \"1m30s\"." $monitor $key (toString $time)) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and $v.serviceMonitor.enabled (not $v.service.enabled) }}
{{- $wrong = append $wrong "serviceMonitor.enabled is true and service.enabled false: set service.enabled to true, or enable podMonitor in its place." }}
{{- end }}
{{- if and $v.serviceMonitor.enabled $v.podMonitor.enabled }}
{{- $wrong = append $wrong "serviceMonitor and podMonitor are enabled, and each sample would be taken twice: keep one of them." }}
{{- end }}
{{- with $v.image }}
{{- if regexMatch "(^|/)(grafana/(alloy|agent)|parca-agent)(:|$)" .repository }}
{{- $wrong = append $wrong (printf "image.repository is %q, the image of another agent: write where that of andiron is." .repository) }}
{{- else if regexMatch "^localhost/[^/]*[.:][^/]*/" (include "andiron.image" $) }}
{{- $wrong = append $wrong (printf "image.repository is %q, which begins with a registry: write that as image.registry, and here what follows it." .repository) }}
{{- else if regexMatch "[:@][^/]*$" .repository }}
{{- $wrong = append $wrong (printf "image.repository is %q, a tag or a digest in it: write that as image.tag or image.digest." .repository) }}
{{- end }}
{{- if regexMatch "://" .registry }}
{{- $wrong = append $wrong (printf "image.registry is %q: write it without a scheme." .registry) }}
{{- end }}
{{- end }}
{{- if and $v.image.digest (not (regexMatch "^(sha256:)?[0-9a-f]{64}$" $v.image.digest)) }}
{{- $wrong = append $wrong (printf "image.digest is %q: write it as \"sha256:\" and 64 digits." $v.image.digest) }}
{{- end }}

{{- $fullname := include "andiron.fullname" . }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $fullname) }}
{{- $wrong = append $wrong (printf "%q is no name for a Service: write one of lower-case letters, digits and \"-\", a letter first, as fullnameOverride." $fullname) }}
{{- end }}

{{- if $wrong }}
{{- fail (printf "\n%s" (join "\n" $wrong)) }}
{{- end }}
{{- end }}
