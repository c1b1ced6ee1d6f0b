#!/usr/bin/env bash
# Runs a private image search beside a non-private one on a fresh machine: packages, build, daemon, painted
# birds, ingest, three private queries, a plan and a report. Output goes to demo/; a second run starts in seconds, with new
# data: stop a daemon on demo/data first.
# usage: demo.sh
set -euo pipefail
[ "$#" -eq 0 ] || { echo "demo: expected no arguments, got: $*" >&2; exit 2; }
cd "$(dirname "$0")/.."
deploy/setup.sh
log=$(mktemp)
cmake --preset release -DPRIVATEMAIL_PYTHON=OFF >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
[ -e build/release/client/privatemail ] || echo "demo: building, which takes some minutes"
# Shows Ninja's progress "[12/80]" on one line, and its last 50 lines if the build fails.
cmake --build --preset release 2>&1 | tee "$log" |
  while IFS= read -r line; do [[ $line == \[* ]] && printf '\rdemo: %s' "${line%% *}" || true; done ||
  { echo; tail -50 "$log" >&2; exit 1; }
echo
rm -f "$log"
bin=build/release
out=demo
mkdir -p "$out"

deploy/paint-birds.sh "$bin/client/privatemail" "$out"

# Each run starts with a new daemon and ledger, so the demo never runs out of budget.
rm -rf "$out/data" "$out/state" "$out/daemon.out"
"$bin/server/privatemaild" --data-dir "$out/data" --listen 127.0.0.1:0 >"$out/daemon.out" 2>"$out/daemon.log" &
daemon=$!
trap 'kill "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true' EXIT
for _ in $(seq 300); do
  grep -qs "^listening on" "$out/daemon.out" && break
  kill -0 "$daemon" 2>/dev/null || { cat "$out/daemon.log" >&2; exit 1; }
  sleep .1
done
grep -qs "^listening on" "$out/daemon.out" ||
  { echo "demo: the daemon does not listen after 30 s: $out/daemon.log" >&2; exit 1; }
server=$(sed -n 's/^listening on //p' "$out/daemon.out")
trust=$(sed -n 's/^trust this server with: --trust //p' "$out/daemon.out")
echo "demo: the daemon listens on $server, its certificate is $trust"
privatemail() {
  "$bin/client/privatemail" --server "$server" --trust "$trust" --key-file "$out/data/admin.key" --state "$out/state" "$@"
}

privatemail collection create birds --anchor-images "$out/anchors" --cells 8 --publish-quality
privatemail ingest birds --images "$out/gallery"
privatemail build birds
privatemail budget set birds --epsilon 1 --delta 1e-4

# Queries: one held-out picture of each of three species. The client knows the species, the server must not.
queries=()
for name in $(ls "$out/held-back" | awk 'NR==4 || NR==11 || NR==19'); do
  queries+=(--image "$out/held-back/$name/011.png" --label "$name")
done
privatemail query birds "${queries[@]}" -k 8 --epsilon .1 --delta 1e-5 \
  --compare-images "$out/gallery" --report "$out/report.html"

echo "demo: what queries for cells find, which need no class and hide the picture among all"
for _ in $(seq 600); do
  privatemail plan birds >"$out/plan.txt" 2>"$out/plan.log" && break
  sleep .1
done
cat "$out/plan.txt"

cat <<END

demo: the daemon is stopped. To continue, start it again in this folder and query it:
  $bin/server/privatemaild --data-dir $out/data &
  $bin/client/privatemail --trust $trust --key-file $out/data/admin.key --state $out/state query birds \\
    --image $out/held-back/${name}/012.png --label ${name} -k 8 --epsilon .1 --delta 1e-5
Running deploy/demo.sh again deletes $out/data and $out/state.
Both programs have --help; docs/guide.md continues where this demo ends.
END
