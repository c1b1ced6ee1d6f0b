#!/bin/sh
# Ten minutes of everything at once on a daemon with the address and undefined-behaviour sanitizers:
# see mixed_load.cc. Usage: tests/e2e/mixed_load.sh [SECONDS [STORE]], STORE sqlite or postgres.
set -eu
cd "$(dirname "$0")/../.."
cmake --preset asan
cmake --build --preset asan --target mixed_load
# ASan keeps what is freed from being used again, and so resident: 256 MiB and 1 MiB a thread unless
# told otherwise, which would fill up for minutes and look like growth, or hide it. It also keeps
# the stack of every allocation for good, once for all that are the same. gRPC is compiled without
# frame pointers, so that stacks through it end in addresses that happened to lie there and hardly
# two are the same: 35 MiB in 200 s, while what was allocated stayed at 10 MiB. Two addresses are
# kept, which is all that is read without a frame pointer; with a single one no leak is reported.
# Whoever wants to know more of an allocation that a report names runs it without this option.
ASAN_OPTIONS=detect_leaks=1:quarantine_size_mb=16:thread_local_quarantine_size_kb=64
export ASAN_OPTIONS=$ASAN_OPTIONS:malloc_context_size=2
export UBSAN_OPTIONS=print_stacktrace=1
exec build/asan/tests/e2e/mixed_load --seconds "${1:-600}" --store "${2:-sqlite}"
