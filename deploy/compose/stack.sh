#!/bin/sh
# The stack of compose.yaml as plain processes: engine, gate, Prometheus, and Grafana where it is installed.
#
#   deploy/compose/stack.sh [DIR]
#
# DIR takes the ledger, the series and the logs; without one it is a new temporary directory. Ctrl-C ends everything.
# `tollgate` and `prove` are those on PATH, else those of this clone's release build.
set -eu

deploy=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:-$(mktemp -d "${TMPDIR:-/tmp}/tollgate-stack.XXXXXX")}
mkdir -p "$dir/ledger" "$dir/series"
PATH="$PATH:$deploy/../target/release:/usr/sbin"

for program in prove tollgate prometheus; do
  command -v "$program" > /dev/null || {
    echo "stack.sh: $program is not there: cargo build --release -p tollgate -p prove; apt-get install prometheus" >&2
    exit 1
  }
done

running=
end() {
  trap - EXIT INT TERM
  for pid in $running; do kill "$pid" 2> /dev/null || true; done
  wait
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# start NAME COMMAND…: in the background, with its output in a file.
start() {
  name=$1
  shift
  "$@" > "$dir/$name.log" 2>&1 &
  running="$! $running"
}

# await NAME URL: until it answers.
await() {
  for _ in $(seq 150); do
    if curl -sf -o /dev/null "$2"; then
      echo "$1: $2"
      return
    fi
    sleep 0.2
  done
  echo "stack.sh: $1 does not answer at $2" >&2
  tail -n 20 "$dir/$1.log" >&2
  exit 1
}

start engine prove engine --preset gpt-oss-120b.h100x4 --model gpt-oss-120b --listen 127.0.0.1:8000 --dcgm 127.0.0.1:9400
await engine http://127.0.0.1:8000/health

sed "s#/var/lib/tollgate#$dir/ledger#" "$deploy/compose/tollgate.yaml" > "$dir/tollgate.yaml"
start tollgate tollgate run -c "$dir/tollgate.yaml"
await tollgate http://127.0.0.1:1976/readyz

if command -v grafana > /dev/null; then
  cp -r "$deploy/grafana/provisioning" "$dir/"
  sed -i "s#/etc/tollgate/dashboards#$deploy/grafana/dashboards#" "$dir/provisioning/dashboards/tollgate.yml"
  export GF_SERVER_HTTP_ADDR=127.0.0.1 GF_AUTH_ANONYMOUS_ENABLED=true GF_AUTH_ANONYMOUS_ORG_ROLE=Viewer
  export GF_PATHS_PROVISIONING="$dir/provisioning" GF_PATHS_DATA="$dir/grafana" GF_PATHS_LOGS="$dir/grafana"
  start grafana grafana server --homepath "${GRAFANA_HOME:-/usr/share/grafana}"
else
  echo "grafana is not installed: Prometheus shows its series, and the rules in /alerts"
fi

start prometheus prometheus --config.file="$deploy/prometheus/prometheus.yml" --storage.tsdb.path="$dir/series" \
  --web.listen-address=127.0.0.1:9090
await prometheus http://127.0.0.1:9090/-/ready

echo "the gate: http://127.0.0.1:1975/v1; logs, ledger and series: $dir; Ctrl-C ends everything"
wait
