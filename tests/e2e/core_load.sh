#!/bin/sh
# Runs core_load_test.cc, a load on the daemon's core without gRPC, for ten minutes under the thread sanitizer.
# usage: tests/e2e/core_load.sh [SECONDS]
set -eu
cd "$(dirname "$0")/../.."
cmake --preset tsan
cmake --build --preset tsan --target core_load_test
PRIVATEMAIL_LOAD_SECONDS=${1:-600} exec build/tsan/tests/unit/server/core_load_test
