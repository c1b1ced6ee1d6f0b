#!/bin/sh
# Ten minutes of everything at once on a daemon with the address and undefined-behaviour sanitizers:
# see mixed_load.cc. Usage: tests/e2e/mixed_load.sh [SECONDS [STORE]], STORE sqlite or postgres.
set -eu
cd "$(dirname "$0")/../.."
cmake --preset asan
cmake --build --preset asan --target mixed_load
# ASan keeps what is freed from being used again, and so resident: 256 MiB and 1 MiB a thread unless
# told otherwise, which would fill up for minutes and look like growth, or hide it.
export ASAN_OPTIONS=detect_leaks=1:quarantine_size_mb=16:thread_local_quarantine_size_kb=64
export UBSAN_OPTIONS=print_stacktrace=1
exec build/asan/tests/e2e/mixed_load --seconds "${1:-600}" --store "${2:-sqlite}"
