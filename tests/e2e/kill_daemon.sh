#!/bin/sh
# Kills a daemon 100 times (or KILLS) on each store and says what it lost: see kill_test.cc.
# Usage: tests/e2e/kill_daemon.sh [BUILD_DIRECTORY [KILLS]]
set -eu
build=${1:-build/dev}
PRIVATEMAIL_KILLS=${2:-100} "$build/tests/e2e/kill_test"
