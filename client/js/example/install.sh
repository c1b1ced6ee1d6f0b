#!/usr/bin/env bash
# Puts the page of this folder with all that it needs into a folder that a web server serves.
# usage: install.sh FOLDER PACKAGE ONNXRUNTIME MODEL.onnx PHOTOGRAPHS
#   PACKAGE      folder of the npm package privatemail
#   ONNXRUNTIME  folder of the npm package onnxruntime-web
#   PHOTOGRAPHS  the folder that the collection was ingested from: one sub-folder a kind
set -euo pipefail
to=$1
mkdir -p "$to/ort" "$to/photographs"
cp "$(dirname "$0")"/{index.html,example.js} "$to"
cp -r "$2" "$to/privatemail"
cp "$3"/dist/ort.wasm.min.mjs "$3"/dist/ort-wasm-simd-threaded.{mjs,wasm} "$to/ort"
cp "$4" "$to/mobilenet_v2.onnx"
cp -r "$5"/. "$to/photographs"
cd "$to/photographs"
find . -name '*.jpg' -printf '"%P"\n' | sort | paste -sd, | sed 's/.*/[&]/' >../photographs.json
