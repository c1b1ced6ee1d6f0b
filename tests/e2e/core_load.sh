#!/bin/sh
# Ten minutes of everything at once on the core of the daemon, without gRPC, under the thread
# sanitizer, after it has found the races that are planted for it: see
# tests/unit/server/engine/core_load_test.cc and planted_races.cmake. Usage: tests/e2e/core_load.sh [SECONDS]
set -eu
cd "$(dirname "$0")/../.."
cmake --preset tsan
cmake --build --preset tsan --target core_load_test planted_races
ctest --test-dir build/tsan --output-on-failure -R '^race_in_'
PRIVATEMAIL_LOAD_SECONDS=${1:-600} exec build/tsan/tests/unit/server/core_load_test
