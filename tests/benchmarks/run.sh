#!/usr/bin/env bash
# Runs all benchmarks, each with its baseline. Takes three to eleven minutes on two idle cores and 8 GB of memory.
# usage: run.sh [BUILD_FOLDER]    default build/dev; first cmake --build BUILD_FOLDER --target benchmarks
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
build="${1:-$here/../../build/dev}"
/usr/bin/python3 "$here/compare_numpy.py" "$build"
# One thread for FAISS as well, whose BLAS would start more.
OPENBLAS_NUM_THREADS=1 "$build/tests/benchmarks/index_benchmark" 1000000 2
OPENBLAS_NUM_THREADS=1 "$build/tests/benchmarks/index_benchmark" 1000000 16
"$build/tests/benchmarks/serving_benchmark" 1000000
"$build/tests/benchmarks/cells_serving_benchmark" 1000000
"$build/tests/benchmarks/cells_benchmark"
"$build/tests/benchmarks/encrypted_benchmark"
/usr/bin/python3 "$here/instruction_budget.py" "$build/tests/benchmarks/counted_work"
