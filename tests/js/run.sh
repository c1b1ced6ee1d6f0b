#!/usr/bin/env bash
# Calls a daemon with the official clients of the Connect protocol, at the versions of the lock file.
# usage: run.sh PRIVATEMAILD SOURCE_FOLDER
set -euo pipefail
daemon=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$source"/tests/js/*.json "$source"/tests/js/*.mjs "$work"
cd "$work"
npm ci --no-audit --no-fund --silent
mkdir generated
protoc -I "$source/proto" --plugin=node_modules/.bin/protoc-gen-es --es_out=generated --es_opt=target=js,import_extension=js \
  "$source"/proto/privatemail/v1/*.proto
PRIVATEMAILD=$daemon node --test connect.test.mjs
