#!/usr/bin/env bash
# Paints the pictures of the demos into FOLDER, unless they exist: 24 species of 60 synthetic birds.
# Per species 10 are public anchors, 3 are held-out queries, the others are the gallery.
# usage: paint-birds.sh PRIVATEMAIL FOLDER    PRIVATEMAIL: the program
set -euo pipefail
program=$1
out=$2
[ ! -e "$out/pictures.done" ] || exit 0
echo "demo: painting 24 species of synthetic birds, 60 pictures each"
rm -rf "$out/pictures" "$out/anchors" "$out/gallery" "$out/held-back"
"$program" sample-images --out "$out/pictures" --classes 24 --per-class 60 --seed 7
for species in "$out"/pictures/*/; do
  name=$(basename "$species")
  mkdir -p "$out/anchors/$name" "$out/gallery/$name" "$out/held-back/$name"
  mv "$species"00*.png "$out/anchors/$name/"
  mv "$species"010.png "$species"011.png "$species"012.png "$out/held-back/$name/"
  mv "$species"*.png "$out/gallery/$name/"
done
rm -rf "$out/pictures"
touch "$out/pictures.done"
