#!/usr/bin/env bash
# The service `demo`: an operator fills a collection with painted birds; a searcher queries one more bird and does not
# send its species. Exits with 0 if the answers contain that species.
# usage: demo.sh              everything; a second run reuses the collection
#        demo.sh search       only the query
#        demo.sh ARGUMENT...  runs privatemail with these arguments as the operator
set -euo pipefail
state=/var/lib/privatemail
operator_key=/daemon/admin.key
searcher_key=$state/searcher.key

privatemail_as() { # KEY_FILE ARGUMENT...
  privatemail --key-file "$1" --ca /certificates/ca.crt --cert /certificates/demo.crt \
    --cert-key /certificates/demo.key "${@:2}"
}

operate() {
  privatemail_as "$operator_key" collection info birds >/dev/null 2>&1 ||
    privatemail_as "$operator_key" collection create birds --anchor-images "$state/anchors"
  privatemail_as "$operator_key" ingest birds --images "$state/gallery"
  privatemail_as "$operator_key" build birds
  [ -e "$searcher_key" ] ||
    privatemail_as "$operator_key" key create searcher --scope search --collection birds --out "$searcher_key"
}

# The budget suffices for ten runs; the searcher's ledger is in a volume.
search() {
  local species answer found
  species=$(basename "$(find "$state/held-back" -mindepth 1 | sort | head -1)")
  privatemail_as "$searcher_key" budget set birds --epsilon 1 --delta 1e-4
  answer=$(privatemail_as "$searcher_key" query birds --image "$state/held-back/$species/011.png" --label "$species" \
    -k 8 --epsilon .1 --delta 1e-5)
  echo "$answer"
  found=$(grep -Ec '^ +[0-9]+  = ' <<<"$answer" || true)
  echo "demo: $found of 8 answers are of the species $species, which the daemon was not told"
  [ "$found" -gt 0 ]
}

case ${1:-} in
  "")
    paint-birds.sh privatemail "$state"
    operate
    search
    ;;
  search) search ;;
  *) privatemail_as "$operator_key" "$@" ;;
esac
