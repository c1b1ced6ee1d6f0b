#!/usr/bin/env bash
# Installs the packages, builds everything and runs every test. Ends with CTest's summary.
# usage: test.sh [--full]
#   --full  also the tests of longer than ten seconds (audits of privacy always run), the fuzzers (20 s each), the Debian packages if you are root, the containers if a Docker engine answers
#           or you are root (then docker.io is installed and an engine started for the test), the tests with a browser,
#           hostile load for some minutes, the demo, and the tests under the address, undefined-behaviour and thread
#           sanitizers
# Times are those of two cores at the first run; a second run builds only what has changed.
set -euo pipefail
cd "$(dirname "$0")/.."

case "$*" in
  "") full="" parts=3 ;;
  --full) full=1 parts=9 ;;
  *)
    echo "test: the only option is --full, but these were given: $*; usage: deploy/test.sh [--full]" >&2
    exit 2
    ;;
esac

part=0
begin() { # WHAT
  part=$((part + 1))
  printf '== %d/%d %s (%d min so far)\n' "$part" "$parts" "$1" "$((SECONDS / 60))"
}
build() { # PRESET [OPTION...]
  cmake --preset "$@"
  cmake --build --preset "$1"
}

if [ -z "$full" ]; then
  begin "packages, about 2 min"
  deploy/setup.sh
else
  begin "packages with a browser, about 4 min"
  deploy/setup.sh --with-browser
  containers="" # their process; they mostly wait, so they run beside the next parts
  if [ "$(id -u)" -eq 0 ] || docker version >/dev/null 2>&1; then
    begin "containers, about 16 min, beside the next part"
    deploy/compose-test.sh > >(sed -u 's/^/   containers: /') 2>&1 &
    containers=$!
    trap 'kill "$containers" 2>/dev/null && wait "$containers"' EXIT # if it still runs, it removes what it made
  else
    begin "containers: skipped, no Docker engine answers, and only root can start one"
  fi
  if [ "$(id -u)" -eq 0 ]; then
    begin "Debian packages, about 18 min"
    deploy/packages-test.sh
  else
    begin "Debian packages: skipped, only root can install them"
  fi
  begin "address and undefined-behaviour sanitizers with fuzzers, about 20 min"
  build asan
  ctest --preset asan
  ctest --preset fuzz
  if [ -n "$containers" ]; then
    wait "$containers"
    trap - EXIT
  fi
  begin "thread sanitizer, about 8 min"
  build tsan
  ctest --preset tsan
fi
begin "build, about 8 min"
build dev ${full:+-DPRIVATEMAIL_JS=ON}
if [ -z "$full" ]; then
  begin "tests, about 5 min"
  exec ctest --preset dev -LE '(^|,)(browser|full)$'
fi
begin "hostile load, 2 min"
programs="build/dev/server/privatemaild build/dev/client/privatemail"
/usr/bin/python3 tests/e2e/one_key.py deploy/nginx $programs proto 120 mixed
cmake --build --preset dev --target benchmarks
begin "the demo with a release build, about 8 min"
deploy/demo.sh
begin "tests with a browser, about 12 min"
exec ctest --preset dev
