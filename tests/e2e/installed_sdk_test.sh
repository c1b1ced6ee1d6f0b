#!/usr/bin/env bash
# Installs the SDK into a temporary folder, and builds and runs a program against it with find_package.
# usage: installed_sdk_test.sh BUILD_FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
# docs/sdk.md shows the example that is built here.
diff <(sed -n '/^```cpp$/,/^```$/p' "$here/../../docs/sdk.md" | sed '1d;$d') "$here/../../client/sdk/example.cc"
cmake --install "$1" --prefix "$prefix" >/dev/null
cmake -S "$here/outside_program" -B "$prefix/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$prefix/build"
"$prefix/build/outside_program" "$prefix/ledger.sqlite"
{ "$prefix/build/example" 2>&1 || true; } | grep -q "^usage: "
