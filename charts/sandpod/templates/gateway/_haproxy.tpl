{{/* The second container of the gateway's pod: gateway/haproxy/run says what each variable is for. */}}
{{- define "sandpod.haproxy" -}}
{{- $fast := .Values.gateway.fastPath -}}
- name: haproxy
  image: {{ include "sandpod.image" (list . "gateway") }}
  imagePullPolicy: {{ .Values.images.pullPolicy }}
  command: [/haproxy/run]
  env:
    - {name: SANDPOD_THREADS, value: {{ $fast.threads | quote }}}
    - {name: SANDPOD_MAX_CONNECTIONS, value: {{ $fast.maxConnections | quote }}}
    - {name: SANDPOD_CONNECTIONS_PER_SOURCE, value: {{ $fast.maxConnectionsPerSource | quote }}}
    # 2,000 more may wait for sandboxes that wake.
    - {name: SANDPOD_PYTHON_CONNECTIONS, value: {{ add .Values.gateway.limits.maxRequests 2250 | quote }}}
    - {name: SANDPOD_ERRORS_PER_SOURCE, value: {{ mul $fast.errorsPerSecond 10 | quote }}}
    - {name: SANDPOD_UNUSUAL_PER_HOST, value: {{ mul $fast.unusualRequestsPerSecond 10 | quote }}}
    - {name: SANDPOD_REQUESTS_PER_SANDBOX, value: {{ .Values.gateway.limits.maxRequestsPerSandbox | quote }}}
    - {name: SANDPOD_REQUESTS_PER_NAMESPACE, value: {{ .Values.gateway.limits.maxRequestsPerNamespace | quote }}}
    - {name: SANDPOD_SCHEME, value: {{ .Values.previews.scheme | quote }}}
    {{- with $fast.trustedProxies }}
    - {name: SANDPOD_TRUSTED_PROXIES, value: {{ join " " . | quote }}}
    {{- end }}
  ports:
    - {name: http, containerPort: 8080}
    - {name: alive, containerPort: 8081}
  readinessProbe:
    httpGet: {path: /, port: alive}
    periodSeconds: 1
    timeoutSeconds: 2
    failureThreshold: 3
  livenessProbe:
    httpGet: {path: /, port: alive}
    initialDelaySeconds: 20
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 3
  resources:
    {{- toYaml $fast.resources | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
  terminationMessagePolicy: FallbackToLogsOnError
  volumeMounts:
    - {name: sockets, mountPath: /run/sandpod}
{{- end -}}
