#!/usr/bin/env bash
# Installs the packages, builds everything and runs every test. Ends with CTest's summary.
set -euo pipefail
cd "$(dirname "$0")/.."
deploy/setup.sh
cmake --preset dev
cmake --build --preset dev
ctest --preset dev
