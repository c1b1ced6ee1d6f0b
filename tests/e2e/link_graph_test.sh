#!/usr/bin/env bash
# Reads the build graph: nothing of client/ goes into the daemon, neither an object nor a library nor a header,
# and only the rooms that speak gRPC include it.
# usage: link_graph_test.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
inputs=$(ninja -C "$2" -t inputs server/privatemaild)
grep -q '^server/libprivatemail_engine.a$' <<<"$inputs" || { echo "the graph does not name the engine: is it read at all?"; exit 1; }
if found=$(grep -E '(^|/)client/' <<<"$inputs"); then
  printf 'privatemaild is made of parts of the client:\n%s\n' "$found"
  exit 1
fi
if found=$(cd "$1" && grep -rnE '#include [<"]client/' common server); then
  printf 'these include the client and must not:\n%s\n' "$found"
  exit 1
fi
allowed='^(common/rpc|server/services|server/daemon)/|^client/(transport|transport_snapshot|paced_call|credentials)\.'
if found=$(cd "$1" && grep -rlE '#include [<"]grpcpp' common client server | grep -vE "$allowed"); then
  printf 'these include grpcpp and must not:\n%s\n' "$found"
  exit 1
fi
echo "the daemon links nothing of client/; gRPC is included where it may be"
