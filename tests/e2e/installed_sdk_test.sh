#!/usr/bin/env bash
# Installs the SDK into a folder of its own, builds a tiny program against it with find_package and runs it.
# usage: installed_sdk_test.sh BUILD_FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
# The example of docs/sdk.md is the one that is built here.
example=$here/../../client/sdk/example.cc
diff <(sed -n '/^```cpp$/,/^```$/p' "$here/../../docs/sdk.md" | sed '1d;$d') "$example"
cmake --install "$1" --prefix "$prefix" >/dev/null
cmake -S "$here/outside_program" -B "$prefix/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$prefix/build"
"$prefix/build/outside_program" "$prefix/ledger.sqlite"
{ "$prefix/build/example" 2>&1 || true; } | grep -q "^usage: "
