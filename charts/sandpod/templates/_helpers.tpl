{{- define "sandpod.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Called with (list $ "operator"), or with (list $ "") for what belongs to neither. */}}
{{- define "sandpod.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
{{- with index . 1 }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{/* Ours come last: a common label cannot take over a selector. */}}
{{- define "sandpod.labels" -}}
{{- $root := index . 0 -}}
{{- $ours := fromYaml (include "sandpod.selectorLabels" .) -}}
{{- $_ := set $ours "app.kubernetes.io/version" $root.Chart.AppVersion -}}
{{- $_ := set $ours "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- $_ := set $ours "app.kubernetes.io/part-of" "sandpod" -}}
{{- $_ := set $ours "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_") -}}
{{- mergeOverwrite (deepCopy $root.Values.commonLabels) $ours | toYaml -}}
{{- end -}}

{{/* labels and annotations of an object; called with (list $ component) or (list $ component annotations). */}}
{{- define "sandpod.metadata" -}}
{{- $root := index . 0 -}}
labels:
  {{- include "sandpod.labels" (list $root (index . 1)) | nindent 2 }}
{{- $annotations := deepCopy $root.Values.commonAnnotations -}}
{{- if gt (len .) 2 -}}
{{- $annotations = mergeOverwrite $annotations (index . 2) -}}
{{- end -}}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* An image's name; called with (list $ "operator"). */}}
{{- define "sandpod.repository" -}}
{{- $root := index . 0 -}}
{{- $image := index $root.Values.images (index . 1) -}}
{{- with $root.Values.images.registry -}}{{ trimSuffix "/" . }}/{{- end -}}
{{- $image.repository -}}
{{- end -}}

{{- define "sandpod.image" -}}
{{- $root := index . 0 -}}
{{- $image := index $root.Values.images (index . 1) -}}
{{- include "sandpod.repository" . -}}
{{- if $image.digest -}}@{{ $image.digest }}{{- else -}}:{{ default $root.Chart.AppVersion $image.tag }}{{- end -}}
{{- end -}}

{{/* What the operator and the gateway have to agree on, and each one's own. JSON in one environment variable: a change
     of a setting changes the pod, so that nothing has to watch for it. */}}
{{- define "sandpod.operatorSettings" -}}
{{- $name := include "sandpod.fullname" . -}}
{{- $sandbox := include "sandpod.repository" (list . "sandbox") -}}
{{- dict
  "systemNamespace" .Release.Namespace
  "sandboxImage" (include "sandpod.image" (list . "sandbox"))
  "builtInImages" (concat (list (printf "%s:*" $sandbox) (printf "%s@*" $sandbox)) .Values.sandboxes.builtInImages)
  "runtimeImage" (include "sandpod.image" (list . "runtime"))
  "runtimeMount" .Values.sandboxes.runtimeMount
  "imagePullPolicy" .Values.images.pullPolicy
  "imagePullSecrets" .Values.sandboxes.imagePullSecrets
  "exclusiveStorageClasses" .Values.sandboxes.exclusiveStorageClasses
  "priorityClassName" .Values.sandboxes.priorityClassName
  "defaults" .Values.sandboxes.defaults
  "keySecret" (printf "%s-key" $name)
  "tlsSecret" (printf "%s-gateway-tls" $name)
  "gatewayService" (printf "%s-gateway" $name)
  "apiService" "v1alpha1.run.sandpod.dev"
  "certificates" (ternary "Managed" "External" (eq .Values.certificates.mode "Managed"))
  "startTimeoutSeconds" (int .Values.sandboxes.startTimeoutSeconds)
  "protectFromDrain" .Values.sandboxes.protectFromDrain
  "protectFromDrainSeconds" (int .Values.sandboxes.protectFromDrainSeconds)
  "releaseLabels" (fromYaml (include "sandpod.selectorLabels" (list . "")))
  "pools" (dict "readSecrets" .Values.pools.readSecrets "mostStarting" (int .Values.pools.mostStarting))
  "network" (fromYaml (include "sandpod.networkSettings" .))
  "previews" (fromYaml (include "sandpod.previewSettings" .))
  "canaryPolicy" (printf "%s-operator" $name)
  "logLevel" .Values.operator.logLevel
  | toJson -}}
{{- end -}}

{{- define "sandpod.previewSettings" -}}
{{- dict
  "mode" .Values.previews.mode
  "site" (fromYaml (include "sandpod.previewSite" .))
  "ingressClass" .Values.previews.ingressClassName
  "tlsSecret" .Values.previews.tlsSecretName
  "annotations" .Values.previews.annotations
  | toYaml -}}
{{- end -}}

{{/* As the operator writes URLs and the gateway reads them. */}}
{{- define "sandpod.previewSite" -}}
{{- dict "domain" .Values.previews.domain "scheme" .Values.previews.scheme "port" (int .Values.previews.port) | toYaml -}}
{{- end -}}

{{- define "sandpod.networkSettings" -}}
{{- $dns := .Values.network.dns -}}
{{- dict
  "clusterRanges" .Values.network.clusterRanges
  "dns" (ternary $dns (omit $dns "nodeLocal") (ne $dns.nodeLocal ""))
  "detectEnforcement" .Values.network.detectEnforcement
  | toYaml -}}
{{- end -}}

{{- define "sandpod.gatewaySettings" -}}
{{- $name := include "sandpod.fullname" . -}}
{{- /* The limits are called the same in both places. */}}
{{- merge (dict
  "systemNamespace" .Release.Namespace
  "keySecret" (printf "%s-key" $name)
  "tlsSecret" (printf "%s-gateway-tls" $name)
  "httpsPort" 8443
  "metricsPort" 9090
  "operatorHost" (printf "%s-operator.%s.svc" $name .Release.Namespace)
  "site" (ternary nil (fromYaml (include "sandpod.previewSite" .)) (eq .Values.previews.mode "None"))
  "authorizationCacheSeconds" .Values.gateway.authorizationCacheSeconds
  "loginSeconds" (int .Values.gateway.loginSeconds)
  "logLevel" .Values.gateway.logLevel
  "trustedProxies" .Values.gateway.fastPath.trustedProxies
  "sockets" (ternary "/run/sandpod" "" .Values.gateway.fastPath.enabled)
  ) .Values.gateway.limits | toJson -}}
{{- end -}}

{{/* The pod of a component, all of it but its ports: called with (list $ "operator" settings ports). */}}
{{- define "sandpod.podTemplate" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $values := index $root.Values $component -}}
metadata:
  labels:
    {{- /* Without the chart's version: a new chart with the same images and settings restarts nothing. */}}
    {{- omit (mergeOverwrite (deepCopy $values.podLabels) (fromYaml (include "sandpod.labels" (list $root $component)))) "helm.sh/chart" | toYaml | nindent 4 }}
  {{- with mergeOverwrite (deepCopy $root.Values.commonAnnotations) $values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "sandpod.fullname" $root }}-{{ $component }}
  enableServiceLinks: false
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $root.Values.images.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: {{ $component }}
      image: {{ include "sandpod.image" (list $root $component) }}
      imagePullPolicy: {{ $root.Values.images.pullPolicy }}
      env:
        - name: SANDPOD_SETTINGS
          value: {{ index . 2 | quote }}
      ports:
        {{- range $name, $port := index . 3 }}
        - {name: {{ $name }}, containerPort: {{ $port }}}
        {{- end }}
      # Every second, so that a start or a rollout is not longer than the program itself needs.
      readinessProbe:
        httpGet: {path: /readyz, port: metrics}
        periodSeconds: 1
        timeoutSeconds: 2
        failureThreshold: 3
      livenessProbe:
        httpGet: {path: /healthz, port: metrics}
        initialDelaySeconds: 20
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      resources:
        {{- toYaml $values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      terminationMessagePolicy: FallbackToLogsOnError
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- if $values.fastPath }}{{ if $values.fastPath.enabled }}
        - {name: sockets, mountPath: /run/sandpod}
    {{- include "sandpod.haproxy" $root | nindent 4 }}
        {{- end }}{{ end }}
  volumes:
    {{- if $values.fastPath }}{{ if $values.fastPath.enabled }}
    - name: sockets
      emptyDir: {medium: Memory, sizeLimit: 1Mi}
    {{- end }}{{ end }}
    # The root file system is read-only; Python and its libraries expect a place for temporary files.
    - name: tmp
      emptyDir: {medium: Memory, sizeLimit: 16Mi}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if gt (int $values.replicas) 1 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "sandpod.selectorLabels" (list $root $component) | nindent 10 }}
  {{- end }}
{{- end -}}
