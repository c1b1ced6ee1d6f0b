#!/bin/sh
# Runs core_load_test.cc, a load on the daemon's core without gRPC, for ten minutes under the thread sanitizer,
# after the sanitizer has found the races of planted_races.cmake.
# usage: tests/e2e/core_load.sh [SECONDS]
set -eu
cd "$(dirname "$0")/../.."
cmake --preset tsan
cmake --build --preset tsan --target core_load_test planted_races
ctest --test-dir build/tsan --output-on-failure -R '^race_in_'
PRIVATEMAIL_LOAD_SECONDS=${1:-600} exec build/tsan/tests/unit/server/core_load_test
