#!/usr/bin/env bash
# Prints the figures of docs/benchmarks.md, each beside its baseline of the same run. Takes the two cores for three to
# eleven minutes and 8 GB of memory; on a machine that does other work the ratios suffer.
# usage: run.sh [BUILD_FOLDER]    default build/dev, with the benchmarks built
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
build="${1:-$here/../../build/dev}"
/usr/bin/python3 "$here/compare_affinity.py" "$build"
"$build/tests/benchmarks/embed_benchmark" 1000000 128
/usr/bin/python3 "$here/compare_release.py" "$build"
"$build/tests/benchmarks/build_benchmark" 1000000 128
# FAISS would have those of BLAS beside its own thread otherwise.
OPENBLAS_NUM_THREADS=1 "$build/tests/benchmarks/index_benchmark" 1000000 2
OPENBLAS_NUM_THREADS=1 "$build/tests/benchmarks/index_benchmark" 1000000 16
"$build/tests/benchmarks/serving_benchmark" 1000000
"$build/tests/benchmarks/cells_serving_benchmark" 1000000
"$build/tests/benchmarks/cells_benchmark"
# Where the build has privatemaild-embed (-DPRIVATEMAIL_MPI=ON).
if [ -x "$build/tests/benchmarks/embed_ranks_benchmark" ]; then "$build/tests/benchmarks/embed_ranks_benchmark" 100000 128; fi
/usr/bin/python3 "$here/instruction_budget.py" "$build/tests/benchmarks/counted_work"
