#!/usr/bin/env bash
# Runs docker-compose.yml for real: builds the images, runs the demonstration to exit code 0, ends the daemon's and then
# PostgreSQL's process with SIGKILL while a writer writes, takes PostgreSQL away, and compares what is stored before and
# after. Starts a Docker engine if none answers (as root, of Debian's packages) and removes what it has made. The first
# run compiles the programs, which takes some minutes. Exit code 0: all of it held.
# usage: compose-test.sh
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d /tmp/pm.XXXXXX) # short, because paths of sockets are
exec 3>&1 4>&2
step() { printf '== %s\n' "$*"; }
fail() { echo "compose-test: FAILED: $*" >&2; exit 1; }
# shellcheck source=deploy/compose/engine.sh
. compose/engine.sh

# Names of this run alone, so that nothing of an engine that was there before is touched.
export PRIVATEMAIL_TAG=test-$$ PRIVATEMAIL_PORT="" DOCKER_BUILDKIT=0 COMPOSE_DOCKER_CLI_BUILD=0
batches=12
rows=10000
compose_tool=()
before=""

compose() {
  "${compose_tool[@]}" --project-name "privatemail-$PRIVATEMAIL_TAG" -f docker-compose.yml -f "$work/test.yml" "$@"
}
# The demo's container, for one command.
demo() { compose run --rm --no-deps -T demo "$@" 2>>"$work/run.log"; }
container_of() { compose ps -q "$1"; }
property() { docker inspect -f "$2" "$(container_of "$1")"; }

# Takes away all of it, whatever has happened before.
finish() {
  local code=$?
  trap - EXIT
  set +e
  exec >&3 2>&4 # a signal may come while a function writes to a file
  [ "$code" -eq 0 ] || tell_what_happened >&2
  if [ -e "$work/test.yml" ]; then
    docker rm -f -v "privatemaild-$PRIVATEMAIL_TAG" >/dev/null 2>&1
    compose down --volumes --rmi all --remove-orphans >"$work/down.log" 2>&1 || { code=1; cat "$work/down.log" >&2; }
    docker rmi "privatemail-base:$PRIVATEMAIL_TAG" >/dev/null 2>&1
    step "removed containers, networks, volumes and images"
  fi
  stop_engine
  rm -rf --one-file-system "${work:?}" || code=1
  [ "$code" -ne 0 ] || step "passed"
  exit "$code"
}
tell_what_happened() {
  [ ! -e "$work/run.log" ] || tail -20 "$work/run.log"
  [ ! -e "$work/test.yml" ] || compose logs --tail 30
}
trap finish EXIT
trap 'exit 130' INT TERM

override_compose_file() {
  # An engine that has no network of its own to build in, or one without a name service, builds in the host's.
  {
    echo "services:"
    printf '  %s: {build: {network: host}}\n' certificates postgres privatemaild demo
  } >"$work/test.yml"
}

build_images() {
  step "building images"
  compose build >"$work/build.log" 2>&1 || { tail -40 "$work/build.log" >&2; fail "docker-compose build"; }
  docker images --format '   {{.Repository}} {{.Size}}' --filter "reference=*:$PRIVATEMAIL_TAG"
}

# What docker-compose.yml overrides: the image's own command and health check; and what it does not use.
try_image_alone() {
  local name=privatemaild-$PRIVATEMAIL_TAG health=""
  # The check reads the certificate, too, which only its owner may.
  ./make-certificates.sh authority "$work/tls" >/dev/null
  ./make-certificates.sh server "$work/tls" tls localhost >/dev/null
  docker run --rm --read-only --network none --user 0 --tmpfs /var/lib/privatemail -v "$work/tls:/run/secrets/tls:ro" \
    -v "$PWD/kubernetes:/kubernetes:ro" "privatemaild:$PRIVATEMAIL_TAG" --config /kubernetes/privatemaild.toml \
    --check-config >/dev/null || fail "kubernetes/privatemaild.toml is refused"
  step "the daemon accepts kubernetes/privatemaild.toml"
  docker run -d --name "$name" --read-only --network none --cap-drop ALL --security-opt no-new-privileges \
    --health-interval 1s "privatemaild:$PRIVATEMAIL_TAG" >/dev/null
  for _ in $(seq 60); do
    health=$(docker inspect -f '{{.State.Health.Status}}' "$name")
    [ "$health" = starting ] || break
    sleep 1
  done
  docker stop "$name" >/dev/null
  health+=", ended with $(docker inspect -f '{{.State.ExitCode}}' "$name")"
  docker rm -v "$name" >/dev/null
  [ "$health" = "healthy, ended with 0" ] || fail "the image alone, read-only and without capabilities: $health"
  step "the image alone, read-only and without capabilities: $health"
}

run_demo() {
  step "docker-compose up --exit-code-from demo"
  compose up --no-color --exit-code-from demo >"$work/up.log" 2>&1 || { tail -60 "$work/up.log" >&2; fail "demo: $?"; }
  sed -n '/demo.*| query /,/demo.*| demo:/p' "$work/up.log"
  step "the demo ended with 0"
}

wait_until_healthy() {
  for _ in $(seq 240); do
    [ "$(property "$1" '{{.State.Health.Status}}')" != healthy ] || return 0
    sleep .5
  done
  fail "$1 is not healthy after 120 s"
}

# Everything that is stored of the birds, items, vectors, labels and versions, in a line.
stored() {
  demo items list birds --limit 1000000 --features --json >"$work/items.json" || fail "items list"
  echo "$(demo items count birds) $(sha256sum <"$work/items.json" | cut -c1-16)"
}

nothing_is_lost() {
  local now
  now=$(stored)
  [ "$now" = "$before" ] || fail "$1: the birds were [$before] and are [$now]"
  demo search >"$work/answer" || { cat "$work/answer" >&2; fail "$1: the search"; }
  step "$1: birds as before [$now]; $(tail -1 "$work/answer")"
}

# What runs in a container while another is killed: an acknowledgement a line.
writer() { # PREFIX
  # shellcheck disable=SC2016  # for the shell in the container
  compose run --rm --no-deps -T --entrypoint bash demo -c '
    set -euo pipefail
    cd /tmp
    for batch in $(seq "$2"); do
      seq "$3" | sed "s/.*/$batch,&,1,0/" >vectors.csv
      seq "$3" | sed "s/.*/0/" >labels.csv
      seq "$3" | sed "s/^/$1-$batch-/" >ids.txt
      demo.sh ingest written --vectors vectors.csv --labels labels.csv --ids ids.txt >/dev/null
      cat ids.txt
    done' writer "$1" "$batches" "$rows"
}

make_written() {
  compose run --rm --no-deps -T --entrypoint bash demo -c '
    cd /tmp && printf "%s\n" 1,0,0,0 0,1,0,0 0,0,1,0 0,0,0,1 >anchors.csv && printf "%s\n" 0 0 1 1 >labels.csv &&
    demo.sh collection create written --anchors anchors.csv --anchor-labels labels.csv' \
    >>"$work/run.log" 2>&1 || fail "collection create"
}

# kill -9 from the engine's side; from within, a container's first process cannot be killed.
kill_process_of() { # SERVICE
  local pid restarts
  pid=$(property "$1" '{{.State.Pid}}')
  restarts=$(property "$1" '{{.RestartCount}}')
  docker run --rm --pid host --network none --user 0 --entrypoint bash "privatemaild:$PRIVATEMAIL_TAG" \
    -c "kill -9 $pid" || fail "kill -9 $pid"
  step "$1: killed process $pid with SIGKILL after $(acknowledged) acknowledged rows"
  for _ in $(seq 60); do
    [ "$(property "$1" '{{.RestartCount}}')" -eq "$restarts" ] || break
    sleep .5
  done
  [ "$(property "$1" '{{.RestartCount}}')" -gt "$restarts" ] || fail "$1 was not started again"
  wait_until_healthy "$1"
}

acknowledged() { wc -l <"$work/acknowledged"; }
was_cut_off() { grep -q "sending again" "$work/writer.log"; }

# Until the writer has another answer and is, probably, in the middle of its next upload.
let_write() { # PROCESS
  local seen
  seen=$(acknowledged)
  until [ "$(acknowledged)" -gt "$seen" ]; do
    kill -0 "$1" 2>/dev/null || { tail "$work/writer.log" >&2; fail "the writer ended early"; }
    sleep .05
  done
  sleep ".$((RANDOM % 8 + 2))"
}

kill_while_writing() { # SERVICE
  local service=$1 writer_pid
  : >"$work/acknowledged"
  writer "$service" >"$work/acknowledged" 2>"$work/writer.log" &
  writer_pid=$!
  for _ in 1 2 3 4; do
    let_write "$writer_pid"
    kill_process_of "$service"
    ! was_cut_off || break
  done
  was_cut_off || fail "$service: no upload was under way at any of four kills"
  wait "$writer_pid" || { tail "$work/writer.log" >&2; fail "the writer did not get over it"; }
  step "$service: an upload was cut off: $(grep -m 1 'sending again' "$work/writer.log")"
  every_acknowledged_row_is_there "$service"
  nothing_is_lost "$service is back"
}

every_acknowledged_row_is_there() { # SERVICE
  demo items list written --limit 1000000 --json >"$work/items.json" || fail "items list"
  grep -o "\"id\":\"$1-[0-9-]*\"" "$work/items.json" | cut -d'"' -f4 | sort >"$work/stored"
  sort "$work/acknowledged" >"$work/expected"
  [ "$(wc -l <"$work/expected")" -eq $((batches * rows)) ] || fail "the writer wrote too little"
  cmp -s "$work/expected" "$work/stored" || fail "$1: acknowledged and stored rows differ: $(
    diff "$work/expected" "$work/stored" | head -3)"
  step "$1: all $((batches * rows)) acknowledged rows are stored, and no other"
}

without_database() {
  local answer
  compose stop postgres >>"$work/run.log" 2>&1
  demo search >"$work/answer" || { cat "$work/answer" >&2; fail "a search without PostgreSQL"; }
  step "without PostgreSQL: $(tail -1 "$work/answer")"
  if answer=$(demo items delete written postgres-1-1 2>&1); then fail "a change without PostgreSQL: $answer"; fi
  tail -3 "$work/run.log" | grep -q UNAVAILABLE || fail "a change without PostgreSQL: $(tail -3 "$work/run.log")"
  step "without PostgreSQL: a change is refused with UNAVAILABLE"
  compose start postgres >>"$work/run.log" 2>&1
  wait_until_healthy postgres
  nothing_is_lost "PostgreSQL is back"
}

have_engine
have_compose
override_compose_file
have_base
build_images
try_image_alone
run_demo
compose up -d privatemaild >>"$work/run.log" 2>&1 || fail "docker-compose up -d privatemaild"
wait_until_healthy privatemaild
make_written
before=$(stored)
nothing_is_lost "started again"
kill_while_writing privatemaild
kill_while_writing postgres
without_database
