#!/usr/bin/env bash
# Installs the packages, builds everything, lets the fuzzers look for 20 s each and runs every test.
# Ends with CTest's summary.
set -euo pipefail
cd "$(dirname "$0")/.."
deploy/setup.sh
cmake --preset fuzz
cmake --build --preset fuzz
ctest --preset fuzz
cmake --preset dev
cmake --build --preset dev
ctest --preset dev
