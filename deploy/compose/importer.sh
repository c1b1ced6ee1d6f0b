#!/usr/bin/env bash
# The service `importer`: an operator, who fills a collection with photographs of fruit and makes a key for the
# searcher. Then it sleeps, because with --exit-code-from Compose stops everything when one container ends.
# usage: importer.sh              imports what is not there yet
#        importer.sh ARGUMENT...  runs privatemail with these arguments as the operator
set -euo pipefail
gallery=/demo/photos/gallery
searcher_key=/searcher/key
model=(--model /demo/mobilenet_v2_imagenet_128px_features.onnx --features-folder "$PRIVATEMAIL_STATE/features")

operate() {
  privatemail --key-file /daemon/admin.key --ca /certificates/ca.crt --cert /certificates/importer.crt \
    --cert-key /certificates/importer.key "$@"
}

import() {
  mkdir -p "$PRIVATEMAIL_STATE/features"
  operate collection info fruit >/dev/null 2>&1 ||
    operate collection create fruit --anchor-images /demo/photos/anchors "${model[@]}" \
      --cells 8 --publish-quality
  operate ingest fruit --images "$gallery" "${model[@]}"
  operate build fruit
}

if [ "$#" -gt 0 ]; then
  operate "$@"
  exit
fi
photos=$(find "$gallery" -name '*.jpg' | wc -l)
operate --json collection info fruit 2>/dev/null | grep -q "\"embedded\":$photos,.*\"items\":$photos," || import
[ -e "$searcher_key" ] || operate key create searcher --scope search --collection fruit --out "$searcher_key"
# Cells are offered once their quality is measured, which fronts do not do.
[ -n "$PRIVATEMAIL_FRONT" ] || until operate plan fruit >/dev/null 2>&1; do sleep .2; done
touch /tmp/ready
echo "importer: the collection fruit has its $photos photographs"
trap 'exit 0' TERM INT
sleep infinity &
wait
