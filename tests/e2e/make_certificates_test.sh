#!/usr/bin/env bash
# Tests deploy/make-certificates.sh: openssl accepts its certificates for their purpose and names only; files
# have the right modes and are never overwritten.
# usage: make_certificates_test.sh SOURCE_FOLDER
set -euo pipefail
make=$1/deploy/make-certificates.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
pki=$folder/pki
fail() { echo "FAILED: $*" >&2; exit 1; }

refused() { # CODE TEXT ARGUMENT...: ends with CODE, says TEXT, changes nothing
  local code=0 before said
  before=$(find "$folder" -type f -exec sha256sum {} + | sort)
  said=$("$make" "${@:3}" 2>&1) || code=$?
  [ "$code" = "$1" ] || fail "${*:3}: ended with $code instead of $1: $said"
  [[ $said == *"$2"* ]] || fail "${*:3}: said '$said', not '$2'"
  [ "$before" = "$(find "$folder" -type f -exec sha256sum {} + | sort)" ] || fail "${*:3}: changed files"
}
mode_is() { [ "$(stat -c %a "$1")" = "$2" ] || fail "$1 has mode $(stat -c %a "$1"), not $2"; }
accepted() { openssl verify -x509_strict -CAfile "$pki/ca.crt" "$@" >/dev/null 2>&1; }

umask 000 # so that the script sets the modes
"$make" authority "$pki" >/dev/null
"$make" server "$pki" db db.example 10.0.0.1 ::1 >/dev/null
"$make" client "$pki" alice >/dev/null
"$make" front "$pki" front front.example >/dev/null

for name in ca db alice front; do
  mode_is "$pki/$name.key" 600
  mode_is "$pki/$name.crt" 644
  [ "$(openssl x509 -in "$pki/$name.crt" -noout -pubkey)" = "$(openssl pkey -in "$pki/$name.key" -pubout)" ] ||
    fail "$name.key is not the key of $name.crt"
done
for name in db alice front; do
  openssl x509 -in "$pki/$name.crt" -noout -ext basicConstraints | grep -q CA:FALSE || fail "$name may sign others"
done
[ "$(find "$pki" -type f | wc -l)" = 8 ] || fail "there are other files than four pairs: $(ls -A "$pki")"

accepted -purpose sslserver -verify_hostname db.example "$pki/db.crt" || fail "db is no server db.example"
accepted -purpose sslserver -verify_ip 10.0.0.1 "$pki/db.crt" || fail "db is no server 10.0.0.1"
accepted -purpose sslclient "$pki/alice.crt" || fail "alice is no client"
accepted -purpose sslserver -verify_hostname front.example "$pki/front.crt" || fail "front is no server front.example"
accepted -purpose sslclient "$pki/front.crt" || fail "front is no client"
openssl verify -CAfile "$pki/front.crt" "$pki/db.crt" >/dev/null 2>&1 || fail "front.crt does not vouch for db"
accepted -purpose sslserver -verify_hostname other.example "$pki/db.crt" && fail "db is any server"
accepted -purpose sslclient "$pki/db.crt" && fail "a server is a client"
accepted -purpose sslserver "$pki/alice.crt" && fail "a client is a server"
"$make" authority "$folder/other" >/dev/null
openssl verify -CAfile "$folder/other/ca.crt" "$pki/db.crt" >/dev/null 2>&1 && fail "another authority vouches for db"

refused 1 "db.key exists" server "$pki" db db.example
rm "$pki/alice.key"
refused 1 "alice.crt exists" client "$pki" alice
refused 1 "NAME must" client "$pki" ../mallory
refused 1 "SAN must" server "$pki" web "a.example,DNS:b.example"
refused 1 "ca.crt cannot be read" client "$folder/none" bob
refused 2 "usage:" bogus
DAYS=0 refused 1 "DAYS must" client "$pki" bob
echo "make-certificates.sh: four pairs, 7 refusals"
