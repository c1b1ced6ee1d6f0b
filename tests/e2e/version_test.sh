#!/usr/bin/env bash
# Compares the version of programs, packages and pages with that of CMakeLists.txt.
# usage: version_test.sh VERSION SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
expect() { # WHO VERSION
  [ "$2" = "$version" ] || { echo "$1 has version '$2', but CMakeLists.txt has $version" >&2; exit 1; }
}
version=$1
expect privatemail "$("$3/client/privatemail" --version | cut -d' ' -f2)"
expect privatemaild "$("$3/server/privatemaild" --version | cut -d' ' -f2)"
expect "the SDK's package" "$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")/\1/p' "$3/client/sdk/privatemailConfigVersion.cmake")"
if [ -e "$3/client/python" ]; then
  expect "the Python package" "$(PYTHONPATH=$3/client/python /usr/bin/python3 -c 'import privatemail; print(privatemail.__version__)')"
fi
expect CITATION.cff "$(sed -n 's/^version: //p' "$2/CITATION.cff")"
expect kustomization.yaml "$(sed -n 's/^ *newTag: //p' "$2"/deploy/kubernetes/{,shards/}kustomization.yaml | sort -u)"
expect CHANGELOG.md "$(sed -n 's/^## \([0-9.]*\).*/\1/p' "$2/CHANGELOG.md" | head -1)"
