#!/bin/sh
# Runs mixed_load.cc for ten minutes on a daemon with the address and undefined-behaviour sanitizers.
# usage: tests/e2e/mixed_load.sh [SECONDS [STORE]]    STORE: sqlite or postgres
set -eu
cd "$(dirname "$0")/../.."
cmake --preset asan
cmake --build --preset asan --target mixed_load
# Memory that only looks like growth: ASan's quarantine of freed memory (256 MiB by default), and a stack per
# allocation site. gRPC has no frame pointers, so that its stacks hardly repeat: 35 MiB in 200 s. Two frames are
# enough for the leak report; for more of an allocation run without malloc_context_size.
ASAN_OPTIONS=detect_leaks=1:quarantine_size_mb=16:thread_local_quarantine_size_kb=64
export ASAN_OPTIONS=$ASAN_OPTIONS:malloc_context_size=2
export UBSAN_OPTIONS=print_stacktrace=1
exec build/asan/tests/e2e/mixed_load --seconds "${1:-600}" --store "${2:-sqlite}"
