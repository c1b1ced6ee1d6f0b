#!/usr/bin/env bash
# Installs the SDK into a temporary folder, and builds and runs a program against it with find_package.
# usage: installed_sdk_test.sh BUILD_FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
# A page shows the example that is built here.
example=$here/../../client/sdk/example.cc
example_text=$(cat "$example")
shown=""
for page in "$here/../../README.md" "$here/../../docs"/*.md; do
  [ "$(sed -n '/^```cpp$/,/^```$/p' "$page" | sed '1d;$d')" != "$example_text" ] || shown=$page
done
[ -n "$shown" ] || { echo "no page has one cpp block that equals $example"; exit 1; }
cmake --install "$1" --prefix "$prefix" >/dev/null
cmake -S "$here/outside_program" -B "$prefix/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$prefix/build"
"$prefix/build/outside_program" "$prefix/ledger.sqlite"
{ "$prefix/build/example" 2>&1 || true; } | grep -q "^usage: "
