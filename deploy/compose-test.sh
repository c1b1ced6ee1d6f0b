#!/usr/bin/env bash
# Tests docker-compose.yml: builds the images, runs everything until the question ends with 0, asks by the page in a
# browser, kills daemon, PostgreSQL and proxy with SIGKILL during uploads, the proxy also during searches, stops
# PostgreSQL, and compares the stored items before and after. Starts a Docker engine if none answers (as root, from
# Debian's packages) and removes everything it made. The first run compiles the programs, which takes some minutes. Exit
# code 0 if every check passed.
# usage: compose-test.sh
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d /tmp/pm.XXXXXX) # short, because a socket's path has at most 107 bytes
exec 3>&1 4>&2
step() { printf '== %s\n' "$*"; }
fail() { echo "compose-test: FAILED: $*" >&2; exit 1; }
# shellcheck source=deploy/compose/engine.sh
. compose/engine.sh

# Names are unique to this run, so nothing else in a running engine is touched.
export PRIVATEMAIL_TAG=test-$$ PRIVATEMAIL_PORT="" DOCKER_BUILDKIT=0 COMPOSE_DOCKER_CLI_BUILD=0
PRIVATEMAIL_PAGE_PORT=$(/usr/bin/python3 -c 'import socket as s; print(s.create_server(("", 0)).getsockname()[1])')
export PRIVATEMAIL_PAGE_PORT # a free one
rows=10000 # of one upload
max_kills=8
max_megabytes=200 # of the daemon's image, base included
compose_tool=()
before=""

compose() {
  "${compose_tool[@]}" --project-name "privatemail-$PRIVATEMAIL_TAG" -f docker-compose.yml -f "$work/test.yml" "$@"
}
# Each runs privatemail in a container of its own.
operator() { compose run --rm --no-deps -T importer "$@" 2>>"$work/run.log"; }
searcher() { compose run --rm --no-deps -T question "$@" 2>>"$work/run.log"; }
container_of() { compose ps -q "$1"; }
property() { docker inspect -f "$2" "$(container_of "$1")"; }

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
  # Builds in the host's network, because the engine may have no network or no name service of its own.
  {
    echo "services:"
    printf '  %s: {build: {network: host}}\n' certificates postgres privatemaild proxy importer question page
  } >"$work/test.yml"
}

build_images() {
  step "building images"
  compose build >"$work/build.log" 2>&1 || { tail -40 "$work/build.log" >&2; fail "docker-compose build"; }
  docker images --format '   {{.Repository}} {{.Size}}' --filter "reference=*:$PRIVATEMAIL_TAG"
  [ "$(docker inspect -f '{{.Size}}' "privatemaild:$PRIVATEMAIL_TAG")" -lt "${max_megabytes}000000" ] ||
    fail "the daemon's image has more than $max_megabytes MB"
}

# Tests the image's own command and health check, which docker-compose.yml overrides.
try_image_alone() {
  local name=privatemaild-$PRIVATEMAIL_TAG health=""
  # --check-config also reads the certificate, which only its owner may read.
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

run_all() {
  step "docker-compose up --exit-code-from question"
  compose up --no-color --exit-code-from question >"$work/up.log" 2>&1 ||
    { tail -60 "$work/up.log" >&2; fail "the question: $?"; }
  sed -n 's/^question.*| /   /p' "$work/up.log"
  step "the question ended with 0"
}

# The second start of everything does no work twice: the importer uploads and the question spends nothing.
start_again() {
  compose up -d >>"$work/run.log" 2>&1 || fail "docker-compose up -d"
  wait_until_healthy page
  [ "$(docker wait "$(docker ps -aq --filter "label=com.docker.compose.project=privatemail-$PRIVATEMAIL_TAG" \
    --filter label=com.docker.compose.service=question)")" = 0 ] || fail "the question at the second start"
  [ "$(compose logs --no-color importer | grep -c 'items are stored')" -eq 1 ] || fail "the importer uploaded twice"
  step "started again: $(compose logs --no-color importer | tail -1 | sed 's/.*| //')"
}

# A joint query of epsilon 2 by the page's one-time address; the question has spent .1 of the same budget.
ask_by_page() {
  dpkg-query -W chromium python3-numpy >/dev/null 2>&1 || install_packages chromium python3-numpy
  [ "$(property page '{{range .HostConfig.PortBindings}}{{range .}}{{.HostIp}}{{end}}{{end}}')" = 127.0.0.1 ] ||
    fail "the page is published on other addresses than 127.0.0.1"
  PAGE_ENTRY=$(compose logs --no-color page | grep -o 'http://127.0.0.1:[0-9]*/open?token=[0-9a-f]*' | tail -1) \
    PICTURE=$PWD/demo/photos/held-back/lime/006.jpg KIND=lime/ SPENT="Epsilon 2.1 of 20 is spent, in 2 releases" \
    PYTHONPATH=../tests/python PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m unittest -v \
    page_browser_test.PublishedPageTest >"$work/browser.log" 2>&1 || { cat "$work/browser.log" >&2; fail "the page"; }
  ! grep skipped "$work/browser.log" || fail "the page was not opened in a browser"
  step "the page answered in a browser"
}

wait_until_healthy() {
  for _ in $(seq 240); do
    [ "$(property "$1" '{{.State.Health.Status}}')" != healthy ] || return 0
    sleep .5
  done
  fail "$1 is not healthy after 120 s"
}

# Count and digest of the fruit: items, vectors, labels and versions.
stored() {
  operator items list fruit --limit 1000000 --features --json >"$work/items.json" || fail "items list"
  echo "$(operator items count fruit) $(sha256sum <"$work/items.json" | cut -c1-16)"
}

nothing_is_lost() {
  local now
  now=$(stored)
  [ "$now" = "$before" ] || fail "$1: the fruit was [$before] and is [$now]"
  searcher ask >"$work/answer" || { cat "$work/answer" >&2; fail "$1: the search"; }
  step "$1: fruit as before [$now]; $(tail -1 "$work/answer")"
}

# Uploads batch after batch until $work/writer/stop exists. It reports through files in $work/writer, because output
# of `compose run` may arrive in one lump: `uploading` names the current batch, `acknowledged` lists acknowledged ids.
writer() { # PREFIX
  # shellcheck disable=SC2016  # for the shell in the container
  compose run --rm --no-deps -T -v "$work/writer:/writer" --entrypoint bash importer -c '
    set -euo pipefail
    exec 2>/writer/log
    cd /tmp
    seq "$2" | sed "s/.*/0/" >labels.csv
    for ((batch = 1; ; ++batch)); do
      [ ! -e /writer/stop ] || exit 0
      seq "$2" | sed "s/.*/$batch,&,1,0/" >vectors.csv
      seq "$2" | sed "s/^/$1-$batch-/" >ids.txt
      echo "$batch" >/writer/uploading
      importer.sh ingest written --vectors vectors.csv --labels labels.csv --ids ids.txt >/dev/null
      rm /writer/uploading
      cat ids.txt >>/writer/acknowledged
    done' writer "$1" "$rows" >>"$work/run.log" 2>&1
}

make_written() {
  compose run --rm --no-deps -T --entrypoint bash importer -c '
    cd /tmp && printf "%s\n" 1,0,0,0 0,1,0,0 0,0,1,0 0,0,0,1 >anchors.csv && printf "%s\n" 0 0 1 1 >labels.csv &&
    importer.sh collection create written --anchors anchors.csv --anchor-labels labels.csv' \
    >>"$work/run.log" 2>&1 || fail "collection create"
}

# Sends SIGKILL from the host's process namespace, at a random time within an upload; from within its container, the
# first process cannot be killed.
kill_while_uploading() { # SERVICE
  local pid restarts
  pid=$(property "$1" '{{.State.Pid}}')
  restarts=$(property "$1" '{{.RestartCount}}')
  # shellcheck disable=SC2016  # for the shell in the container
  docker run --rm --pid host --network none --user 0 -v "$work/writer:/writer:ro" --entrypoint timeout \
    "privatemaild:$PRIVATEMAIL_TAG" 120 bash -c '
    current() { cat /writer/uploading 2>/dev/null; }
    while true; do
      sleep .02
      batch=$(current) && [ -n "$batch" ] || continue
      sleep ".$((RANDOM % 8 + 1))"
      [ "$(current)" = "$batch" ] && kill -9 "$1" && exit 0
    done' killer "$pid" || fail "$1: process $pid was not killed during an upload within 120 s: $(writer_log)"
  step "$1: killed process $pid with SIGKILL, $(acknowledged) acknowledged so far"
  for _ in $(seq 60); do
    [ "$(property "$1" '{{.RestartCount}}')" -eq "$restarts" ] || break
    sleep .5
  done
  [ "$(property "$1" '{{.RestartCount}}')" -gt "$restarts" ] || fail "$1 was not started again"
  wait_until_healthy "$1"
}

new_writer() {
  rm -rf "$work/writer"
  mkdir -m 777 "$work/writer" # the writer is another user
}
writer_log() { tail "$work/writer/log" 2>/dev/null || true; }
acknowledged() { { cat "$work/writer/acknowledged" 2>/dev/null || true; } | wc -l; }
was_cut_off() { grep -qs "sending again" "$work/writer/log"; }

# An acknowledgement after the restart shows that the interrupted upload has ended.
wait_for_acknowledgement() { # PROCESS
  local seen
  seen=$(acknowledged)
  for _ in $(seq 1200); do
    [ "$(acknowledged)" -eq "$seen" ] || return 0
    kill -0 "$1" 2>/dev/null || fail "the writer ended early: $(writer_log)"
    sleep .1
  done
  fail "no upload was acknowledged within 120 s: $(writer_log)"
}

kill_while_writing() { # SERVICE
  local service=$1 writer_pid
  new_writer
  writer "$service" &
  writer_pid=$!
  for _ in $(seq "$max_kills"); do
    kill_while_uploading "$service"
    wait_for_acknowledgement "$writer_pid"
    ! was_cut_off || break
  done
  was_cut_off || fail "$service: none of $max_kills kills cut an upload off"
  touch "$work/writer/stop"
  wait "$writer_pid" || fail "the writer failed: $(writer_log)"
  step "$service: an upload was cut off: $(grep -m 1 'sending again' "$work/writer/log")"
  every_acknowledged_row_is_there "$service"
  nothing_is_lost "$service is back"
}

every_acknowledged_row_is_there() { # SERVICE
  operator items list written --limit 1000000 --json >"$work/items.json" || fail "items list"
  grep -o "\"id\":\"$1-[0-9-]*\"" "$work/items.json" | cut -d'"' -f4 | sort >"$work/stored"
  sort "$work/writer/acknowledged" >"$work/expected"
  cmp -s "$work/expected" "$work/stored" || fail "$1: acknowledged and stored rows differ: $(
    diff "$work/expected" "$work/stored" | head -3)"
  step "$1: all $(acknowledged) acknowledged rows are stored, and no other"
}

# Sends the last request again and again, which costs nothing.
kill_proxy_while_searching() {
  local searches
  new_writer
  # shellcheck disable=SC2016  # for the shell in the container
  compose run --rm --no-deps -T -v "$work/writer:/writer" --entrypoint bash question -c '
    for ((batch = 1; ; ++batch)); do
      [ ! -e /writer/stop ] || exit 0
      echo "$batch" >/writer/uploading
      for _ in {1..20}; do
        if searcher.sh resend --label lime >/dev/null 2>>/writer/log; then echo "$batch" >>/writer/acknowledged; fi
      done
      rm /writer/uploading
    done' >>"$work/run.log" 2>&1 &
  searches=$!
  kill_while_uploading proxy
  wait_for_acknowledgement "$searches"
  touch "$work/writer/stop"
  wait "$searches" || fail "the searches ended: $(writer_log)"
  ! grep error: "$work/writer/log" | grep -v UNAVAILABLE || fail "a search failed otherwise than by UNAVAILABLE"
  nothing_is_lost "proxy is back, $(grep -c error: "$work/writer/log") searches failed and $(acknowledged) did not"
}

without_database() {
  local answer
  compose stop postgres >>"$work/run.log" 2>&1
  searcher ask >"$work/answer" || { cat "$work/answer" >&2; fail "a search without PostgreSQL"; }
  step "without PostgreSQL: $(tail -1 "$work/answer")"
  if answer=$(operator items delete written postgres-1-1 2>&1); then fail "a change without PostgreSQL: $answer"; fi
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
run_all
start_again
ask_by_page
make_written
before=$(stored)
nothing_is_lost "started again"
kill_while_writing privatemaild
kill_while_writing postgres
kill_while_writing proxy
kill_proxy_while_searching
without_database
