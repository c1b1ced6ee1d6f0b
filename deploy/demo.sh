#!/usr/bin/env bash
# Searches photographs of fruit and vegetables on a fresh machine in four ways: nothing hidden, under encryption, the
# joint scheme without a label, cells. Packages, build, daemon, ingest, queries, a table and a report. Output goes to demo/; a second
# run starts in seconds, with new data: stop a daemon on demo/data first.
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
mkdir -p "$out/features"

# Each run starts with a new daemon and ledger, so the demo never runs out of budget.
rm -rf "$out/data" "$out/state" "$out/daemon.out" "$out/plan.json"
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

photos=deploy/demo/photos
model=(--model deploy/demo/mobilenet_v2_imagenet_128px_features.onnx)
kept=(--features-folder "$out/features")
privatemail collection create fruit --anchor-images "$photos/anchors" "${model[@]}" "${kept[@]}" \
  --cells 8 --publish-quality --with-encrypted
privatemail ingest fruit --images "$photos/gallery" "${model[@]}" "${kept[@]}"
privatemail build fruit --wait
privatemail budget set fruit --epsilon 20 --delta 1e-4

# The middle of each third of the held-back photographs. No command below is told what they show.
queries=()
for photo in $(find "$photos/held-back" -name '*.jpg' | sort | awk 'NR==24 || NR==72 || NR==120'); do
  queries+=(--image "$photo")
done
privatemail query fruit "${queries[@]:0:2}" "${model[@]}" -k 8
privatemail -v query fruit "${queries[@]}" "${model[@]}" -k 8 >"$out/encrypted.txt"
privatemail -v query fruit "${queries[@]}" "${model[@]}" "${kept[@]}" -k 8 --scheme joint --epsilon .1 --delta 1e-5 \
  --compare-images "$photos/gallery" --report "$out/report.html" >"$out/joint.txt"
privatemail plan fruit --epsilon 4 --max-bytes 300K --out "$out/plan.json" >"$out/plan.txt"
cat "$out/plan.txt"
privatemail -v query fruit "${queries[@]}" "${model[@]}" --plan "$out/plan.json" >"$out/cells.txt"

echo
echo "demo: of 8 matches, those of the photograph's kind"
awk '
  function show(what, clear, encrypted, joint, cells) {
    printf "  %-26s %-15s %-21s %-34s %s\n", what, clear, encrypted, joint, cells
  }
  # A line of the first column has a key of the answer, or begins one of its sections, whose lines are indented.
  /^[a-z]/ { section = $0; sub("  .*", "", section) }
  FNR == 1 { scheme = FILENAME; sub(".*/", "", scheme); sub("[.]txt$", "", scheme); targets = 1 }
  $1 == "query" {
    kind = $2; sub("/[^/]*$", "", kind); sub(".*/", "", kind)
    if (scheme == "joint") kinds[++photos] = kind
  }
  $1 == "targets" { targets = $2 } # of a message that they share
  /^ / && $1 != "id" && section == "matches" { found[scheme, kind] += index($1, kind "/") == 1 }
  /^ / && section == "non private matches" { found["clear", kind] += index($0, " " kind "/") > 0 }
  section == "bytes" {
    for (i = 1; i < NF; ++i) {
      if ($i == "down") down[scheme] = int($(i + 1) / targets) " down"
      if ($i == "up") up[scheme] = int($(i + 1) / targets) " up, "
    }
  }
  section == "guarantee" && $1 == "epsilon" { hidden[scheme] = "epsilon " $2 }
  section == "guarantee" && $1 == "delta" { hidden[scheme] = hidden[scheme] " delta " $2 }
  END {
    show("photograph of", "nothing hidden", "encrypted", "joint, no label", "cells")
    for (i = 1; i <= photos; ++i)
      show(kinds[i], found["clear", kinds[i]], found["encrypted", kinds[i]], found["joint", kinds[i]], found["cells", kinds[i]])
    show("bytes of a query", "features: 5120", up["encrypted"] down["encrypted"],
      up["joint"] down["joint"], up["cells"] down["cells"])
    show("photograph and kind hidden", "no", "ring-LWE, 128 bits", hidden["joint"],
      hidden["cells"])
  }' "$out/encrypted.txt" "$out/joint.txt" "$out/cells.txt"

cat <<END

demo: $out/report.html shows the joint queries with pictures and plots, $out/*.txt all that is known of each search.
demo: the daemon is stopped. To continue, start it again in this folder and query it:
  $bin/server/privatemaild --data-dir $out/data &
  $bin/client/privatemail --trust $trust --key-file $out/data/admin.key --state $out/state query fruit \\
    --image $photos/held-back/lime/006.jpg ${model[*]} -k 8
or search in the browser:
  $bin/client/privatemail --trust $trust --key-file $out/data/admin.key --state $out/state page --collection fruit \\
    --pictures $photos/gallery ${model[*]}
Running deploy/demo.sh again deletes $out/data and $out/state.
Both programs have --help; docs/guide.md continues where this demo ends.
END
