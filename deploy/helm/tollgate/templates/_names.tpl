{{- define "tollgate.name" -}}{{ .Release.Name | trunc 53 | trimSuffix "-" }}{{- end }}
{{- define "tollgate.account" -}}{{ .Values.serviceAccount.name | default (include "tollgate.name" .) }}{{- end }}
{{- define "tollgate.selector" -}}
app.kubernetes.io/name: tollgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "tollgate.labels" -}}
{{ include "tollgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "tollgate.image" -}}
{{- with .Values.image }}{{ with .registry }}{{ . }}/{{ end }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- /* What the gate reads of the kinds that have a namespace. */ -}}
{{- define "tollgate.reads" -}}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways, listenersets, httproutes, referencegrants, backendtlspolicies]
  verbs: [list, watch]
- apiGroups: [aigateway.envoyproxy.io]
  resources: [aigatewayroutes, mcproutes, aiservicebackends, backendsecuritypolicies, gatewayconfigs, quotapolicies]
  verbs: [list, watch]
- apiGroups: [gateway.envoyproxy.io]
  resources: [backends, backendtrafficpolicies, clienttrafficpolicies, securitypolicies, envoyproxies]
  verbs: [list, watch]
- apiGroups: [inference.networking.k8s.io]
  resources: [inferencepools]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [services]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways/status, listenersets/status, httproutes/status, backendtlspolicies/status]
  verbs: [patch]
- apiGroups: [aigateway.envoyproxy.io]
  resources: [aigatewayroutes/status, mcproutes/status, aiservicebackends/status, backendsecuritypolicies/status, gatewayconfigs/status, quotapolicies/status]
  verbs: [patch]
- apiGroups: [gateway.envoyproxy.io]
  resources: [backends/status, backendtrafficpolicies/status, clienttrafficpolicies/status, securitypolicies/status]
  verbs: [patch]
- apiGroups: [inference.networking.k8s.io]
  resources: [inferencepools/status]
  verbs: [patch]
{{- end }}
{{- define "tollgate.subject" -}}
- { kind: ServiceAccount, name: {{ include "tollgate.account" . }}, namespace: {{ .Release.Namespace }} }
{{- end }}
