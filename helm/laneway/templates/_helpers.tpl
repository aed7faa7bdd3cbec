{{/* The name of the chart, as a label. */}}
{{- define "laneway.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name of the objects. 50 characters leave room for suffixes and for the number of the pod. */}}
{{- define "laneway.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "laneway.selectorLabels" -}}
app.kubernetes.io/name: {{ include "laneway.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "laneway.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "laneway.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "laneway.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "laneway.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "laneway.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* What the schema says too, for those who switch its check off. */}}
{{- define "laneway.check" -}}
{{- if ne (int .Values.replicaCount) 1 }}
{{- fail "replicaCount must be 1: the embedded store belongs to one server. A second one would be refused by the lock of the home, or have a store of its own and know nothing of the runs of the first." }}
{{- end }}
{{- if gt (float64 (dig "park_s" 10 .Values.settings.drain)) (float64 .Values.settings.drain.timeout_s) }}
{{- fail "settings.drain.park_s must not exceed settings.drain.timeout_s: it is the last part of it." }}
{{- end }}
{{- if hasKey (default dict .Values.settings.telemetry) "prometheus_port" }}
{{- fail "settings.telemetry.prometheus_port: use metrics.enabled and metrics.port, which also open the port of the pod." }}
{{- end }}
{{- range .Values.extraEnv }}
{{- if hasPrefix "LANEWAY_" .name }}
{{- fail (printf "extraEnv: %s belongs into `settings`: the chart computes from them." .name) }}
{{- end }}
{{- end }}
{{- range $name, $file := .Values.apiKeys.files }}
{{- $provider := dig "models" "providers" $name dict $.Values.settings }}
{{- if or (hasKey $provider "api_key_env") (hasKey $provider "api_key_file") }}
{{- fail (printf "apiKeys.files.%s: settings.models.providers.%s has a place for the key too; give one of them." $name $name) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Seconds until SIGKILL: longer than the longest way out of the server (D-18). */}}
{{- define "laneway.gracePeriodSeconds" -}}
{{- $drain := .Values.settings.drain }}
{{- add (ceil (addf $drain.timeout_s $drain.announce_s)) .Values.shutdown.marginSeconds }}
{{- end }}

{{/* A value as TOML. JSON texts and lists of texts are TOML too; whole numbers, which Helm makes floats, are not. */}}
{{- define "laneway.tomlValue" -}}
{{- if or (kindIs "float64" .) (kindIs "int64" .) (kindIs "int" .) }}
{{- if eq (float64 (int64 .)) (float64 .) }}{{ int64 . }}{{ else }}{{ toJson . }}{{ end }}
{{- else }}{{ toRawJson . }}
{{- end }}
{{- end }}

{{/* A tree of settings as TOML tables. Takes a dict of `path` (a list of names) and `tree`. */}}
{{- define "laneway.toml" -}}
{{- $path := .path }}
{{- $values := list }}
{{- $tables := list }}
{{- range $name, $value := .tree }}
{{- if kindIs "map" $value }}
{{- $tables = append $tables (include "laneway.toml" (dict "path" (append $path $name) "tree" $value)) }}
{{- else if not (kindIs "invalid" $value) }}
{{- $values = append $values (printf "%s = %s" (include "laneway.tomlKey" $name) (include "laneway.tomlValue" $value)) }}
{{- end }}
{{- end }}
{{- if and $path $values }}
{{- $names := list }}
{{- range $path }}
{{- $names = append $names (include "laneway.tomlKey" .) }}
{{- end }}
{{- $values = prepend $values (printf "[%s]" (join "." $names)) }}
{{- end }}
{{- $parts := list }}
{{- if $values }}
{{- $parts = append $parts (join "\n" $values) }}
{{- end }}
{{- join "\n\n" (concat $parts (compact $tables)) }}
{{- end }}

{{- define "laneway.tomlKey" -}}
{{- if regexMatch "^[A-Za-z0-9_-]+$" . }}{{ . }}{{ else }}{{ toRawJson . }}{{ end }}
{{- end }}

{{/* laneway.toml: the settings, and where the files with keys are. */}}
{{- define "laneway.settings" -}}
{{- $settings := deepCopy .Values.settings }}
{{- range $name, $file := .Values.apiKeys.files }}
{{- $place := dict "models" (dict "providers" (dict $name (dict "api_key_file" (printf "/etc/laneway/keys/%s" $name)))) }}
{{- $settings = mergeOverwrite $settings $place }}
{{- end }}
{{- include "laneway.toml" (dict "path" list "tree" $settings) | trim }}
{{- end }}

{{/* OTEL_RESOURCE_ATTRIBUTES; the variables in it are resolved by Kubernetes. */}}
{{- define "laneway.resourceAttributes" -}}
{{- $attributes := list "k8s.namespace.name=$(POD_NAMESPACE)" "k8s.pod.name=$(POD_NAME)" "k8s.node.name=$(NODE_NAME)" }}
{{- range $name, $value := .Values.otel.resourceAttributes }}
{{- $attributes = append $attributes (printf "%s=%s" $name $value) }}
{{- end }}
{{- join "," $attributes }}
{{- end }}
