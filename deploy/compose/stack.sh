#!/bin/sh
# The stack of compose.yaml as plain processes: engine, gate, Prometheus, and Grafana where it is installed.
#
#   deploy/compose/stack.sh [DIR]
#
# DIR takes the ledger, the series and the logs; without one it is a new temporary directory. Ctrl-C, or the end of the
# terminal, ends everything.
# `tollgate` and `prove` are those on PATH, else those of this clone's release build.
set -eu

deploy=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
dir=${1:-$(mktemp -d "${TMPDIR:-/tmp}/tollgate-stack.XXXXXX")}
mkdir -p -- "$dir/ledger" "$dir/series"
dir=$(CDPATH='' cd -- "$dir" && pwd)
PATH="$PATH:$deploy/../target/release:/usr/sbin"

for program in curl prove tollgate prometheus; do
  command -v "$program" > /dev/null || {
    echo "stack.sh: $program is not there: cargo build --release -p tollgate -p prove; apt-get install curl prometheus" >&2
    exit 1
  }
done

# ask URL: fails by curl's exit codes. No proxy knows of this machine's loopback.
ask() {
  curl -sf --noproxy '*' --max-time 2 -o /dev/null "$1"
}

# What another program answers would be taken for an answer of ours.
ports="8000 9400 1975 1976 9090"
if command -v grafana > /dev/null; then ports="$ports 3000"; fi
for port in $ports; do
  status=0
  ask "http://127.0.0.1:$port/" || status=$?
  # 7: nobody takes the connection.
  [ "$status" -eq 7 ] || {
    echo "stack.sh: port $port is taken by another program: end that first (ss -ltnp 'sport = :$port' names it)" >&2
    exit 1
  }
done

running=
end() {
  trap - EXIT HUP INT QUIT TERM
  for pid in $running; do kill "$pid" 2> /dev/null || true; done
  wait
}
trap end EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 131' QUIT
trap 'exit 143' TERM

# start NAME COMMAND…: in the background, with its output in a file.
start() {
  name=$1
  shift
  "$@" > "$dir/$name.log" 2>&1 &
  pid=$!
  running="$pid $running"
}

# await URL: until what was started last answers. It has to live a moment after the answer, too: an answer may be another's.
await() {
  for _ in $(seq 150); do
    lives
    if ask "$1"; then
      # As long as one whose port is taken needs to find out.
      sleep 0.5
      lives
      echo "$name: $1"
      return
    fi
    sleep 0.2
  done
  fail "$name does not answer at $1"
}

lives() {
  kill -0 "$pid" 2> /dev/null || fail "$name has ended"
}

fail() {
  echo "stack.sh: $1; $dir/$name.log ends with:" >&2
  tail -n 20 "$dir/$name.log" >&2
  exit 1
}

start engine prove engine --preset gpt-oss-120b.h100x4 --model gpt-oss-120b --listen 127.0.0.1:8000 --dcgm 127.0.0.1:9400
await http://127.0.0.1:8000/health

# The gate and Grafana fill in variables themselves, whatever characters are in a path.
export STACK_LEDGER="$dir/ledger" STACK_DASHBOARDS="$deploy/grafana/dashboards"

start tollgate tollgate run -c "$deploy/compose/tollgate.yaml"
await http://127.0.0.1:1976/readyz

if command -v grafana > /dev/null; then
  cp -r "$deploy/grafana/provisioning" "$dir/"
  sed -i 's#/etc/tollgate/dashboards#$STACK_DASHBOARDS#' "$dir/provisioning/dashboards/tollgate.yml"
  export GF_SERVER_HTTP_ADDR=127.0.0.1 GF_SERVER_HTTP_PORT=3000
  export GF_AUTH_ANONYMOUS_ENABLED=true GF_AUTH_ANONYMOUS_ORG_ROLE=Viewer
  # No administrator, whose first password everybody knows, and no way to sign in.
  export GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION=true GF_AUTH_DISABLE_LOGIN_FORM=true GF_AUTH_BASIC_ENABLED=false
  export GF_PATHS_PROVISIONING="$dir/provisioning" GF_PATHS_DATA="$dir/grafana" GF_PATHS_LOGS="$dir/grafana"
  start grafana grafana server --homepath "${GRAFANA_HOME:-/usr/share/grafana}"
else
  echo "grafana is not installed: Prometheus shows its series, and the rules in /alerts"
fi

start prometheus prometheus --config.file="$deploy/prometheus/prometheus.yml" --storage.tsdb.path="$dir/series" \
  --web.listen-address=127.0.0.1:9090
await http://127.0.0.1:9090/-/ready

echo "the gate: http://127.0.0.1:1975/v1; logs, ledger and series: $dir; Ctrl-C ends everything"
wait
