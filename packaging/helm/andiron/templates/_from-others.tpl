{{- /* SPDX-License-Identifier: Apache-2.0 */}}
{{- /* Values of other charts that do not exist here, and values at a place where other charts have
       them: what to write. The schema lets them through, so that who brings a file of such a chart
       is told this, all at once, and not only that they are unknown. A key without a row of its own
       has its parent's. */}}
{{- define "andiron.fromOthers" -}}
is of Alloy's chart:
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
  alloy.resources: write it as "resources"
  alloy.secret: write the text of the configuration as "config", and what is secret in it into a Secret that "extraEnv" or "backend.secret" names
  alloy.securityContext: write it as "securityContext"; the default is the least that sampling needs
  alloy.stabilityLevel: leave it out; no component needs it
  alloy.storagePath: write the node's folder as "spool.path"
  alloy.timeoutSeconds: write it into "readinessProbe"
  alloy.uiPathPrefix: leave it out; the agent's page is at "/"
  alloy.windows: leave it out; the agent samples Linux
  configReloader: leave it out; a changed configuration is taken up without it
  controller.autoscaling: leave it out; there is one pod for each node
  controller.enableStatefulSetAutoDeletePVC: leave it out; "spool" says what is kept
  controller.extraAnnotations: write it as "controller.annotations"
  controller.extraLabels: write it as "controller.podLabels"
  controller.parallelRollout: write it as "controller.updateStrategy"
  controller.podDisruptionBudget: leave it out; a drain leaves pods of a DaemonSet alone
  controller.replicas: leave it out; there is one pod for each node
  controller.topologySpreadConstraints: leave it out; there is one pod for each node
  controller.type: leave it out; it is a DaemonSet
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
is of k8s-monitoring's chart:
  alloy-logs: leave it out; profiles are all that is taken
  alloy-metrics: leave it out; profiles are all that is taken
  alloy-operator: leave it out; the chart installs the agents itself
  alloy-profiles: write its "controller" as "controller", and what its "alloy" holds without "alloy" before it
  alloy-receiver: leave it out; profiles are all that is taken
  alloy-singleton: leave it out; profiles are all that is taken
  annotationAutodiscovery: leave it out; profiles are all that is taken
  applicationObservability: leave it out; profiles are all that is taken
  autoInstrumentation: leave it out; profiles are all that is taken
  beyla: leave it out; profiles are all that is taken
  cluster: write its name as "backend.externalLabels.cluster"
  clusterEvents: leave it out; profiles are all that is taken
  clusterMetrics: leave it out; profiles are all that is taken
  collectorCommon: write its "controller" as "controller", and what its "alloy" holds without "alloy" before it
  collectors: write "controller" of the one for profiles as "controller", and what its "alloy" holds without "alloy" before it
  costMetrics: leave it out; profiles are all that is taken
  dataProcessors: leave it out, or write a configuration of your own as "config"
  destinations: write the url of the one of type "pyroscope" as "backend.pyroscope.url", and its credentials into a Secret that "backend.secret" names
  externalServices: write the host of its "pyroscope" as "backend.pyroscope.url", and its credentials into a Secret that "backend.secret" names
  hostMetrics: leave it out; profiles are all that is taken
  integrations: leave it out; profiles are all that is taken
  kepler: leave it out; profiles are all that is taken
  kube-state-metrics: leave it out; profiles are all that is taken
  kubernetesManifests: leave it out; profiles are all that is taken
  logs: leave it out; profiles are all that is taken
  nodeLogs: leave it out; profiles are all that is taken
  opencost: leave it out; profiles are all that is taken
  podLogs: leave it out; profiles are all that is taken
  podLogsObjects: leave it out; profiles are all that is taken
  podLogsViaKubernetesApi: leave it out; profiles are all that is taken
  podLogsViaLoki: leave it out; profiles are all that is taken
  podLogsViaOpenTelemetry: leave it out; profiles are all that is taken
  profiles: write what its "ebpf" holds as "discovery" and "profiling"
  profilesReceiver: write "receive.enabled" and "receive.port"
  profiling.annotations: write the whole annotation as "discovery.annotation"
  profiling.collector: leave it out; there is one agent for each node
  profiling.dataProcessors: leave it out, or write a configuration of your own as "config"
  profiling.destinations: leave it out; "backend" is where profiles go
  profiling.ebpf: write what it holds as "discovery" and "profiling"
  profiling.ebpf.annotationSelectors: write "discovery.targetingScheme" and "discovery.annotation", or a configuration of your own as "config"
  profiling.ebpf.annotations: write the whole annotation as "discovery.annotation"
  profiling.ebpf.demangle: write it as "profiling.demangle"
  profiling.ebpf.dotnetEnabled: leave it out; that language is shown by the frames of its interpreter
  profiling.ebpf.enabled: leave it out; profiling is what the chart is for
  profiling.ebpf.excludeNamespaces: write it as "discovery.excludeNamespaces"
  profiling.ebpf.extraDiscoveryRules: write a configuration of your own as "config"
  profiling.ebpf.hotspotEnabled: write the languages that you want as "profiling.languages"
  profiling.ebpf.labelSelectors: write a configuration of your own as "config"
  profiling.ebpf.namespaces: write it as "discovery.namespaces"
  profiling.ebpf.perlEnabled: leave it out; that language is shown by the frames of its interpreter
  profiling.ebpf.phpEnabled: leave it out; that language is shown by the frames of its interpreter
  profiling.ebpf.pythonEnabled: write the languages that you want as "profiling.languages"
  profiling.ebpf.rubyEnabled: leave it out; that language is shown by the frames of its interpreter
  profiling.ebpf.sampleRate: write it as "profiling.sampleRate"
  profiling.ebpf.targetingScheme: write it as "discovery.targetingScheme"
  profiling.ebpf.v8Enabled: write the languages that you want as "profiling.languages"
  profiling.enabled: leave it out; profiling is what the chart is for
  profiling.java: leave it out; "java" in "profiling.languages" shows methods of Java, and allocations and locks need a "config" of your own
  profiling.pprof: leave it out, or write pyroscope.scrape into a configuration of your own as "config"
  prometheus-node-exporter: leave it out; profiles are all that is taken
  prometheus-operator-crds: leave it out; profiles are all that is taken
  prometheusOperatorObjects: leave it out; profiles are all that is taken
  receivers: leave it out; profiles are all that is taken
  replaceComponent: leave it out, or write a configuration of your own as "config"
  selfReporting: leave it out; nothing is reported to anybody
  telemetryServices: leave it out; profiles are all that is taken
  traces: leave it out; profiles are all that is taken
  windowsEventLogs: leave it out; profiles are all that is taken
is of another agent's chart:
  agent: leave it out; it has no counterpart, and the README has all values
  agent.clustering: leave it out; each agent discovers the pods of its own node
  agent.config: write a configuration of your own as "config", or describe it by "discovery"
  agent.configMap: write its content as "config"
  agent.enablePsp: leave it out; the namespace has a level of Pod Security
  agent.enableReporting: leave it out; nothing is reported to anybody
  agent.enabled: leave it out
  agent.envFrom: write it as "envFrom"
  agent.extraArgs: leave it out; flags here are those of "andiron run"
  agent.extraEnv: write it as "extraEnv"
  agent.extraLabels: write it as "controller.podLabels"
  agent.extraPorts: write it as "extraPorts"
  agent.extraVolumeMounts: write it as "mounts.extra"; no other host path is needed
  agent.extraVolumes: write it as "controller.volumes.extra"; no other host path is needed
  agent.image: leave it out; "image" is that of andiron
  agent.listenAddr: leave it out; the agent listens at its pod's address
  agent.listenPort: write it as "listenPort"
  agent.logLevel: write it as "logLevel"
  agent.mode: leave it out; there is one
  agent.mounts: write "extra" of it as "mounts.extra"; no other host path is needed
  agent.nodeSelector: write it as "controller.nodeSelector"
  agent.podAnnotations: write it as "controller.podAnnotations"
  agent.podExtraLabels: write it as "controller.podLabels"
  agent.podLabelSelector: write a configuration of your own as "config"
  agent.podSecurityContext: write it as "controller.podSecurityContext"; none is needed
  agent.remoteStoreAddress: write it as "backend.parca.address"
  agent.remoteStoreBearerToken: write it into a Secret, that one's name as "backend.secret.name" and the key as "backend.secret.tokenKey"
  agent.remoteStoreInsecure: write it as "backend.parca.insecure"
  agent.remoteStoreInsecureSkipVerify: write the Secret with the authority to trust as "backend.tls.secret"
  agent.resources: write it as "resources"
  agent.securityContext: write it as "securityContext"; the default is the least that sampling needs
  agent.service: write its annotations as "service.annotations"; it is headless, at "listenPort"
  agent.serviceMonitor: write it as "serviceMonitor"
  agent.socketPath: leave it out; the API server says which pods there are
  agent.storagePath: write the node's folder as "spool.path"
  agent.storeAddress: write it as "backend.parca.address"
  agent.tolerations: write it as "controller.tolerations"
  server: leave it out; Parca itself is installed by its own chart
has another place here:
  affinity: write it as "controller.affinity"
  annotations: write it as "controller.annotations" or "controller.podAnnotations"
  args: write it as "extraArgs"
  autoscaling: leave it out; there is one pod for each node
  backend.address: write it as "backend.pyroscope.url", "backend.parca.address" or "backend.otlp.endpoint"
  backend.auth: write it into a Secret, and name that and its key in "backend.secret"
  backend.basicAuth: write it into a Secret, and name that and its key in "backend.secret"
  backend.bearerToken: write it into a Secret, and name that and its key in "backend.secret"
  backend.endpoint: write it as "backend.pyroscope.url", "backend.parca.address" or "backend.otlp.endpoint"
  backend.existingSecret: write it as "backend.secret.name"
  backend.otlp.auth: write it into a Secret, and name that and its key in "backend.secret"
  backend.otlp.basicAuth: write it into a Secret, and name that and its key in "backend.secret"
  backend.otlp.externalLabels: write it as "backend.externalLabels"
  backend.otlp.headers: write it as "backend.headers"
  backend.otlp.insecure: leave it out; the scheme of "backend.otlp.endpoint" says it
  backend.otlp.password: write it into a Secret, and name that and its key in "backend.secret"
  backend.otlp.secret: write it as "backend.secret"
  backend.otlp.tenantId: write it as a header in "backend.headers"
  backend.otlp.tls: write it as "backend.tls"
  backend.otlp.token: write it into a Secret, and name that and its key in "backend.secret"
  backend.otlp.url: write it as "backend.otlp.endpoint"
  backend.otlp.username: write it into a Secret, and name that and its key in "backend.secret"
  backend.parca.auth: write it into a Secret, and name that and its key in "backend.secret"
  backend.parca.basicAuth: write it into a Secret, and name that and its key in "backend.secret"
  backend.parca.externalLabels: write it as "backend.externalLabels"
  backend.parca.headers: write it as "backend.headers"
  backend.parca.password: write it into a Secret, and name that and its key in "backend.secret"
  backend.parca.secret: write it as "backend.secret"
  backend.parca.tenantId: write it as a header in "backend.headers"
  backend.parca.tls: write it as "backend.tls"
  backend.parca.token: write it into a Secret, and name that and its key in "backend.secret"
  backend.parca.url: write host and port as "backend.parca.address"
  backend.parca.username: write it into a Secret, and name that and its key in "backend.secret"
  backend.password: write it into a Secret, and name that and its key in "backend.secret"
  backend.pyroscope.auth: write it into a Secret, and name that and its key in "backend.secret"
  backend.pyroscope.basicAuth: write it into a Secret, and name that and its key in "backend.secret"
  backend.pyroscope.endpoint: write it as "backend.pyroscope.url"
  backend.pyroscope.externalLabels: write it as "backend.externalLabels"
  backend.pyroscope.headers: write it as "backend.headers"
  backend.pyroscope.password: write it into a Secret, and name that and its key in "backend.secret"
  backend.pyroscope.secret: write it as "backend.secret"
  backend.pyroscope.tenantId: write it as "backend.pyroscope.tenantID"
  backend.pyroscope.tls: write it as "backend.tls"
  backend.pyroscope.token: write it into a Secret, and name that and its key in "backend.secret"
  backend.pyroscope.username: write it into a Secret, and name that and its key in "backend.secret"
  backend.tls.enabled: leave it out; the backend's URL says it
  backend.tls.insecureSkipVerify: write the Secret with the authority to trust as "backend.tls.secret"
  backend.token: write it into a Secret, and name that and its key in "backend.secret"
  backend.type: leave it out; the backend is the one that is given
  backend.url: write it as "backend.pyroscope.url", "backend.parca.address" or "backend.otlp.endpoint"
  backend.username: write it into a Secret, and name that and its key in "backend.secret"
  collectInterval: write it as "profiling.collectInterval"
  commonLabels: leave it out; labels of pods are "controller.podLabels"
  containerSecurityContext: write it as "securityContext"; the default is the least that sampling needs
  controller.env: write it as "extraEnv"
  controller.envFrom: write it as "envFrom"
  controller.extraArgs: write it as "extraArgs"
  controller.extraEnv: write it as "extraEnv"
  controller.extraPorts: write it as "extraPorts"
  controller.extraVolumeMounts: write it as "mounts.extra"
  controller.extraVolumes: write it as "controller.volumes.extra"
  controller.hostAliases: write it as "hostAliases"
  controller.image: write it as "image"
  controller.labels: write it as "controller.podLabels"
  controller.livenessProbe: write it as "livenessProbe"
  controller.maxUnavailable: write it into "controller.updateStrategy.rollingUpdate"
  controller.mounts: write it as "mounts.extra"
  controller.readinessProbe: write it as "readinessProbe"
  controller.resources: write it as "resources"
  controller.securityContext: write it as "securityContext"
  controller.volumeMounts: write it as "mounts.extra"
  daemonset: write what it holds as "controller"
  demangle: write it as "profiling.demangle"
  dnsConfig: write it as "controller.dnsConfig"
  dnsPolicy: write it as "controller.dnsPolicy"
  env: write it as "extraEnv"
  excludeNamespaces: write it as "discovery.excludeNamespaces"
  externalLabels: write it as "backend.externalLabels"
  extraContainers: write it as "controller.extraContainers"
  extraDeploy: write it as "extraObjects"
  extraManifests: write it as "extraObjects"
  extraResources: write it as "extraObjects"
  extraVolumeMounts: write it as "mounts.extra"
  extraVolumes: write it as "controller.volumes.extra"
  headers: write it as "backend.headers"
  hostNetwork: write it as "controller.hostNetwork"
  hostPID: write it as "controller.hostPID"
  image.imagePullPolicy: write it as "image.pullPolicy"
  image.imagePullSecrets: write it as "image.pullSecrets"
  image.name: write it as "image.repository"
  imagePullPolicy: write it as "image.pullPolicy"
  imagePullSecrets: write it as "image.pullSecrets"
  initContainers: write it as "controller.initContainers"
  labels: write it as "controller.podLabels"
  languages: write it as "profiling.languages"
  lifecycle: leave it out; the agent delivers what it holds when it is told to stop
  metrics: write "serviceMonitor.enabled" or "podMonitor.enabled"
  minReadySeconds: write it as "controller.minReadySeconds"
  namespace: give it to helm as --namespace
  namespaces: write it as "discovery.namespaces"
  networkPolicy.extraEgress: write all rules as "networkPolicy.egress"
  nodeSelector: write it as "controller.nodeSelector"
  otlp: write it as "backend.otlp"
  parca: write it as "backend.parca"
  persistence: write "spool.type", "spool.path" and "spool.size"
  podAnnotations: write it as "controller.podAnnotations"
  podDisruptionBudget: leave it out; a drain leaves pods of a DaemonSet alone
  podLabels: write it as "controller.podLabels"
  podMonitor.labels: write it as "podMonitor.additionalLabels"
  podMonitor.namespace: leave it out; it is in the release's namespace
  podSecurityContext: write it as "controller.podSecurityContext"
  priorityClassName: write it as "controller.priorityClassName"
  prometheusRule.labels: write it as "prometheusRule.additionalLabels"
  prometheusRule.namespace: leave it out; it is in the release's namespace
  pullSecrets: write it as "image.pullSecrets"
  pyroscope: write it as "backend.pyroscope"
  replicaCount: leave it out; there is one pod for each node
  replicas: leave it out; there is one pod for each node
  revisionHistoryLimit: write it as "controller.revisionHistoryLimit"
  sampleRate: write it as "profiling.sampleRate"
  secret: write it as "backend.secret"
  serviceAccount.labels: write it as "serviceAccount.additionalLabels"
  serviceMonitor.jobLabel: write a rule into "serviceMonitor.relabelings"
  serviceMonitor.labels: write it as "serviceMonitor.additionalLabels"
  serviceMonitor.namespace: leave it out; it is in the release's namespace
  sidecars: write it as "controller.extraContainers"
  spool.enabled: leave it out; "spool.type" says what becomes of it
  spool.hostPath: write it as "spool.path"
  spool.maxBytes: write it as "spool.size"
  startupProbe: write it into "livenessProbe", as its initialDelaySeconds or failureThreshold
  targetingScheme: write it as "discovery.targetingScheme"
  tenantID: write it as "backend.pyroscope.tenantID"
  terminationGracePeriodSeconds: write it as "controller.terminationGracePeriodSeconds"
  tls: write the Secret with certificates as "backend.tls.secret"
  tolerations: write it as "controller.tolerations"
  topologySpreadConstraints: leave it out; there is one pod for each node
  updateStrategy: write it as "controller.updateStrategy"
  volumeMounts: write it as "mounts.extra"
  volumes: write it as "controller.volumes.extra"
{{- end }}
