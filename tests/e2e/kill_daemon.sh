#!/bin/sh
# Runs the crash tests 100 times (or TIMES) per store: kill_test.cc and postgres_power_loss_test.cc.
# usage: tests/e2e/kill_daemon.sh [BUILD_DIRECTORY [TIMES]]
set -eu
build=${1:-build/dev}
times=${2:-100}
PRIVATEMAIL_KILLS=$times "$build/tests/e2e/kill_test"
PRIVATEMAIL_POWER_CUTS=$times "$build/tests/e2e/postgres_disk_test" --gtest_filter='PostgresPowerLoss.*'
