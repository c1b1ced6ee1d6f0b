#!/usr/bin/env bash
# Installs the packages, builds everything, lets the fuzzers look for 20 s each and runs every test; where a Docker engine
# answers, the containers' as well. Ends with CTest's summary.
set -euo pipefail
cd "$(dirname "$0")/.."
deploy/setup.sh --with-browser
cmake --preset fuzz
cmake --build --preset fuzz
ctest --preset fuzz
if docker version >/dev/null 2>&1; then deploy/compose-test.sh; fi
cmake --preset dev
cmake --build --preset dev
ctest --preset dev
