#!/usr/bin/env bash
# Checks the build graph and the includes:
#   - the daemon contains no object, library or header of client/, and no OpenCV
#   - no cycle of includes between folders, and none from a library to a program
#   - what computes knows no messages; of the stores one file does, which keeps parameters in their bytes
#   - only RPC, services, connect, daemon and transport include grpcpp
#   - of the client, only the reader of the user's index files calls FAISS, and nothing calls OpenCV itself
#   - the C library loads the standard libraries only, and shows its own functions only
#   - programs with a network channel do not link seeded noise; the evaluation's module, which does, has no channel
# usage: link_graph_test.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
inputs=$(ninja -C "$2" -t inputs server/privatemaild)
grep -q '^server/libprivatemail_engine.a$' <<<"$inputs" || { echo "the graph does not contain the engine, so it was not read"; exit 1; }
if found=$(grep -E '(^|/)client/' <<<"$inputs"); then
  printf 'privatemaild contains parts of the client:\n%s\n' "$found"
  exit 1
fi
if found=$(cd "$1" && grep -rnE '#include [<"](client/|privatemail/[a-z0-9_]+\.h)' common server); then
  printf 'these include the client and must not:\n%s\n' "$found"
  exit 1
fi
allowed='^(common/rpc|server/services|server/connect|server/daemon|client/transport)/'
if found=$(cd "$1" && grep -rlE '#include [<"]grpcpp' common client server | grep -vE "$allowed"); then
  printf 'these include grpcpp and must not:\n%s\n' "$found"
  exit 1
fi
if found=$(cd "$1" && grep -rlE '#include <(faiss|opencv2)/' client | grep -vE '^client/cli/faiss_index.cc$'); then
  printf 'these call FAISS or OpenCV, which data of a server must not reach:\n%s\n' "$found"
  exit 1
fi
if found=$(ninja -C "$2" -t inputs server/privatemaild | grep -i privatemail_features); then
  printf 'privatemaild links OpenCV:\n%s\n' "$found"
  exit 1
fi
if found=$(cd "$1" && grep -rlE '#include "(common/wire|privatemail/v1)/' common server/engine server/cells server/store |
  grep -vE '^(common/(wire|rpc)/|server/store/decode.cc$)'); then
  printf 'these include messages and must not:\n%s\n' "$found"
  exit 1
fi
found=$(cd "$1" && grep -roE '#include "(client/(cli|python)|server/daemon)/' common client server |
  awk -F '["/:]' '{ if (index($0, $(NF - 2) "/" $(NF - 1) "/") != 1) print }')
if [ -n "$found" ]; then
  printf 'these include a program and must not:\n%s\n' "$found"
  exit 1
fi
# tsort names the members of a cycle on its standard error.
if ! found=$(cd "$1" && grep -roE '#include "[^"]+/[^"/]+\.h"' common client server |
  sed -E 's|/[^/:]*:#include "privatemail/[^/]*$| client/include/privatemail|; s|/[^/:]*:#include "(.*)/[^/]*$| \1|' |
  awk '$1 != $2' | sort -u | tsort 2>&1 >/dev/null); then
  printf 'folders include each other in a cycle:\n%s\n' "$found"
  exit 1
fi
library=$2/client/c/libprivatemail_encrypted.so
if found=$(readelf -d "$library" | grep NEEDED | grep -vE '\[lib(stdc\+\+|m|gcc_s|c)\.so\.|\[ld-linux'); then
  printf 'the C library loads more than the standard libraries:\n%s\n' "$found"
  exit 1
fi
if found=$(nm -DC --defined-only "$library" | grep -E 'absl|privatemail::|Eigen'); then
  printf 'the C library shows more than its functions:\n%s\n' "$found"
  exit 1
fi
for program in client/privatemail server/privatemaild $(ninja -C "$2" -t targets all | grep -oE '^client/python/privatemail/_native[^:]*'); do
  if found=$(ninja -C "$2" -t inputs "$program" | grep -E 'libprivatemail_(seeded_bits|simulation)'); then
    printf '%s has a network channel and links seeded noise:\n%s\n' "$program" "$found"
    exit 1
  fi
done
# A preset may build no Python package.
seeded=$(ninja -C "$2" -t targets all | grep -oE '^client/python/privatemail/evaluation/_native[^:]*' || true)
if [ -n "$seeded" ]; then
  inputs=$(ninja -C "$2" -t inputs "$seeded")
  grep -q '^client/libprivatemail_seeded_bits.a$' <<<"$inputs" || { echo "the graph of $seeded lacks its noise"; exit 1; }
  if found=$(grep -E 'grpc|libprivatemail_(client|rpc|services|daemon)' <<<"$inputs"); then
    printf '%s links a network channel:\n%s\n' "$seeded" "$found"
    exit 1
  fi
  if found=$(readelf -d "$2/$seeded" | grep -E 'NEEDED.*lib(grpc|pq|ssl|curl|civetweb)'); then
    printf '%s loads a network library:\n%s\n' "$seeded" "$found"
    exit 1
  fi
fi
echo "the daemon links nothing of client/, and seeded noise is in no program with a channel"
