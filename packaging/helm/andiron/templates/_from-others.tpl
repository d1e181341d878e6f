{{- /* SPDX-License-Identifier: Apache-2.0 */}}
{{- /* Values of Alloy's chart that do not exist here, and what to write. The schema lets them
       through, so that who brings a file of Alloy's is told this and not only that they are
       unknown. A key without a row of its own has its parent's. */}}
{{- define "andiron.fromAlloy" -}}
alloy: leave it out
alloy.clustering: leave it out; each agent discovers the pods of its own node
alloy.command: leave it out; the image has one program
alloy.configMap: write the text of the configuration as "config", or describe it by "backend" and "discovery"
alloy.configMap.content: write it as "config", or describe it by "backend" and "discovery"
alloy.enableContainerPort: leave it out
alloy.enableHttpServerPort: leave it out
alloy.enableReporting: leave it out; nothing is reported to anybody
alloy.envFrom: write it as "envFrom"
alloy.extraArgs: write it as "extraArgs"
alloy.extraEnv: write it as "extraEnv"
alloy.extraPorts: write it as "extraPorts"
alloy.hostAliases: write it as "hostAliases"
alloy.initialDelaySeconds: write it into "readinessProbe"
alloy.lifecycle: leave it out; the agent delivers what it holds when it is told to stop
alloy.listenAddr: leave it out; the agent listens at its pod's address
alloy.listenPort: write it as "listenPort"
alloy.listenScheme: leave it out; for TLS write status.http with its block tls as "config"
alloy.livenessProbe: write it as "livenessProbe"
alloy.mounts: write "extra" of it as "mounts.extra"; no other host path is needed
alloy.resizePolicy: leave it out; pods are replaced
alloy.secret: write the text of the configuration as "config", and what is secret in it into a Secret that "extraEnv" or "backend.secret" names
alloy.resources: write it as "resources"
alloy.securityContext: write it as "securityContext"; the default is the least that sampling needs
alloy.stabilityLevel: leave it out; no component needs it
alloy.storagePath: write the node's folder as "spool.path"
alloy.timeoutSeconds: write it into "readinessProbe"
alloy.uiPathPrefix: leave it out; the agent's page is at "/"
alloy.windows: leave it out; the agent samples Linux
agent: write its configMap.content as "config", and what else it holds without "agent" before it
configReloader: leave it out; a changed configuration is taken up without it
controller.autoscaling: leave it out; there is one pod for each node
controller.enableStatefulSetAutoDeletePVC: leave it out; "spool" says what is kept
controller.extraLabels: write it as "controller.podLabels"
controller.extraAnnotations: write it as "controller.annotations"
controller.parallelRollout: write it as "controller.updateStrategy"
controller.podDisruptionBudget: leave it out; a drain leaves pods of a DaemonSet alone
controller.replicas: leave it out; there is one pod for each node
controller.type: leave it out; it is a DaemonSet
controller.topologySpreadConstraints: leave it out; there is one pod for each node
controller.volumeClaimTemplates: leave it out; "spool" says what is kept
crds: leave it out; no custom resource is needed
httpRoute: leave it out; nobody outside the cluster asks the agent for anything
ingress: leave it out; nobody outside the cluster asks the agent for anything
networkPolicy.flavor: leave it out; it is Kubernetes's own kind
networkPolicy.ingress: write who may come, "from" of its rules, as "networkPolicy.ingressFrom"
networkPolicy.policyTypes: leave it out; both ways are ruled
prometheusRules: write "prometheusRule.enabled" for the chart's own alerts, and rules of your own into "extraObjects"
rbac.clusterRules: leave it out; the agent lists and watches pods, and more goes into "extraObjects"
rbac.rules: leave it out; the agent lists and watches pods, and more goes into "extraObjects"
sdkInjectionController: leave it out; the agent changes no pod
service.clusterIP: leave it out; that of metrics is headless, and "receive" has one of its own
service.externalTrafficPolicy: leave it out; nobody outside the cluster asks the agent for anything
service.internalTrafficPolicy: leave it out; "receive" leads to the agent of the own node
service.labels: leave it out; monitors have "additionalLabels", and find the Service by the chart's own
service.nodePort: leave it out; nobody outside the cluster asks the agent for anything
service.trafficDistribution: leave it out; that of metrics is headless, and "receive" leads to the own node
service.type: leave it out; that of metrics is headless, and "receive" has one of its own
serviceAccount.automountServiceAccountToken: leave it out; only the agents' pods have the token
{{- end }}
