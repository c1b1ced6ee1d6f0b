#!/usr/bin/env bash
# The service `demo`: an operator fills a collection with photographs of fruit; a searcher queries one more, without a
# label. Exits with 0 if the answers contain its kind.
# usage: demo.sh              everything; a second run reuses the collection
#        demo.sh search       only the query
#        demo.sh ARGUMENT...  runs privatemail with these arguments as the operator
set -euo pipefail
state=/var/lib/privatemail
operator_key=/daemon/admin.key
searcher_key=$state/searcher.key
photos=/demo/photos
model=(--model /demo/mobilenet_v2_imagenet_128px_features.onnx)

privatemail_as() { # KEY_FILE ARGUMENT...
  privatemail --key-file "$1" --ca /certificates/ca.crt --cert /certificates/demo.crt \
    --cert-key /certificates/demo.key "${@:2}"
}

operate() {
  if ! privatemail_as "$operator_key" collection info fruit >/dev/null 2>&1; then
    privatemail_as "$operator_key" collection create fruit --anchor-images "$photos/anchors" "${model[@]}" \
      --mean 0,0,0 --scale 1
  fi
  mkdir -p "$state/features"
  privatemail_as "$operator_key" ingest fruit --images "$photos/gallery" "${model[@]}" --features-folder "$state/features"
  privatemail_as "$operator_key" build fruit
  [ -e "$searcher_key" ] ||
    privatemail_as "$operator_key" key create searcher --scope search --collection fruit --out "$searcher_key"
}

# The budget suffices for ten runs; the searcher's ledger is in a volume.
search() {
  local photo kind answer found
  photo=$(find "$photos/held-back" -name '*.jpg' | sort | awk 'NR==72') # the one in the middle
  kind=$(basename "$(dirname "$photo")")
  privatemail_as "$searcher_key" budget set fruit --epsilon 1 --delta 1e-4
  answer=$(privatemail_as "$searcher_key" query fruit --image "$photo" "${model[@]}" \
    -k 8 --epsilon .1 --delta 1e-5)
  echo "$answer"
  found=$(grep -Ec "^ +[0-9]+ .* class $kind\$" <<<"$answer" || true)
  echo "demo: $found of 8 answers show a $kind, which neither the daemon nor the client was told"
  [ "$found" -gt 0 ]
}

case ${1:-} in
  "")
    operate
    search
    ;;
  search) search ;;
  *) privatemail_as "$operator_key" "$@" ;;
esac
