#!/usr/bin/env bash
# Installs the SDK into a temporary folder, builds the example against it with find_package, and searches with it by
# every scheme.
# usage: installed_sdk_test.sh BUILD_FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1
prefix=$(mktemp -d)
daemon=
trap 'kill $daemon 2>/dev/null || true; wait || true; rm -rf "$prefix"' EXIT
# docs/sdk.md shows the example that is built here.
diff <(sed -n '/^```cpp$/,/^```$/p' "$here/../../docs/sdk.md" | sed '1d;$d') "$here/../../client/sdk/example.cc"
[ "$(grep -cvE '^$' "$here/../../client/sdk/example.cc")" -le 20 ]
cmake --install "$build" --prefix "$prefix" >/dev/null
cmake -S "$here/outside_program" -B "$prefix/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$prefix/build"
{ "$prefix/build/example" 2>&1 || true; } | grep -q "^usage: "

# 1,200 items around 3 anchors in each of 4 classes, by a collection that offers every scheme.
cd "$prefix"
awk 'BEGIN { srand(1); for (i = 0; i < 1212; i++) { c = i % 4; line = ""
  for (d = 0; d < 6; d++) line = line (d ? "," : "") (d == c ? 3 : 0) + rand()
  print line > (i < 12 ? "anchors.csv" : "items.csv"); print c > (i < 12 ? "anchors.txt" : "items.txt") } }'
"$build/server/privatemaild" --data-dir data --listen 127.0.0.1:0 >daemon.out 2>daemon.log &
daemon=$!
until grep -qs '^listening' daemon.out; do kill -0 "$daemon"; sleep .1; done
PRIVATEMAIL_SERVER=$(sed -n 's/^listening on //p' daemon.out)
PRIVATEMAIL_TRUST=$(sed -n 's/^trust this server with: --trust //p' daemon.out)
PRIVATEMAIL_KEY_FILE=$PWD/data/admin.key
PRIVATEMAIL_STATE=$PWD/state
export PRIVATEMAIL_SERVER PRIVATEMAIL_TRUST PRIVATEMAIL_KEY_FILE PRIVATEMAIL_STATE
privatemail() { "$build/client/privatemail" "$@" >/dev/null; }
privatemail collection create things --anchors anchors.csv --anchor-labels anchors.txt --cells 4 --publish-quality \
  --with-encrypted
privatemail ingest things --vectors items.csv --labels items.txt
privatemail build things
privatemail budget set things --epsilon 1 --delta 1e-4
example() { "$prefix/build/example" "$PRIVATEMAIL_SERVER" "$PRIVATEMAIL_TRUST" "$PRIVATEMAIL_KEY_FILE" things "$1"; }
for scheme in encrypted joint cells; do
  until example "$scheme" >found 2>error; do
    grep -qE "UNAVAILABLE" error || { cat error >&2; exit 1; }  # rows, cells or their quality are being prepared
    sleep .2
  done
  [ "$(wc -l <found)" -eq 8 ]
done
