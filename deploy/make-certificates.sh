#!/usr/bin/env bash
# Creates an authority, and certificates for servers and clients, with openssl. Never overwrites a file.
# usage: make-certificates.sh authority DIR
#        make-certificates.sh server DIR NAME SAN...    SAN: a DNS name or IP address of the server
#        make-certificates.sh front DIR NAME SAN...     a server that shows its certificate to shards, as a client does;
#                                                       NAME.crt ends with the authority, which signs those of the shards
#        make-certificates.sh client DIR NAME
#
# DIR/ca.crt      the authority; public
# DIR/ca.key      its key; store it on a machine that serves nobody
# DIR/NAME.crt    certificate, mode 0644
# DIR/NAME.key    EC P-256 key, mode 0600
# DAYS in the environment is the validity: by default 3650 for an authority, 825 for the others. A failure leaves no
# file behind.
set -euo pipefail
umask 077

fail() { echo "make-certificates: $*" >&2; exit "${code:-1}"; }
usage() { code=2 fail "$1; usage: authority DIR | server DIR NAME SAN... | front DIR NAME SAN... | client DIR NAME"; }

extensions_of_authority() {
  printf '%s\n' "basicConstraints = critical, CA:TRUE, pathlen:0" "keyUsage = critical, keyCertSign, cRLSign" \
    "subjectKeyIdentifier = hash"
}
extensions_of() { # PURPOSE [SAN...]
  printf '%s\n' "basicConstraints = critical, CA:FALSE" "keyUsage = critical, digitalSignature" \
    "extendedKeyUsage = $1" "subjectKeyIdentifier = hash" "authorityKeyIdentifier = keyid"
  local names="" san
  for san in "${@:2}"; do names+=${names:+, }$(typed_name "$san"); done
  [ -z "$names" ] || echo "subjectAltName = $names"
}

# Adds the type of a name. Refuses characters that openssl would read as syntax.
typed_name() {
  if [[ $1 =~ ^[0-9]+(\.[0-9]+){3}$ || $1 =~ ^[0-9a-fA-F:]*:[0-9a-fA-F:.]*$ ]]; then
    echo "IP:$1"
  elif [[ $1 =~ ^(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$ ]]; then
    echo "DNS:$1"
  else
    fail "SAN must be a DNS name or an IP address, but is '$1'"
  fi
}

# Writes $draft/NAME.key and $draft/NAME.crt with the extensions of $draft/extensions.
certify() { # NAME SUBJECT VALID_DAYS OPTION_OF_X509...
  local key=$draft/$1.key
  {
    openssl ecparam -name prime256v1 -genkey -noout -out "$key"
    openssl req -new -key "$key" -subj "$2" -out "$draft/request"
    openssl x509 -req -in "$draft/request" -sha256 -days "${DAYS:-$3}" -set_serial "0x$(openssl rand -hex 16)" \
      -extfile "$draft/extensions" -out "$draft/$1.crt" "${@:4}"
  } >"$draft/log" 2>&1 || { cat "$draft/log" >&2; fail "openssl failed"; }
  chmod 644 "$draft/$1.crt"
}

# A link, unlike a move, does not replace an existing file.
publish() { # NAME
  ln "$draft/$1.key" "$directory/$1.key" 2>/dev/null || fail "$directory/$1.key exists, and is not overwritten"
  ln "$draft/$1.crt" "$directory/$1.crt" 2>/dev/null ||
    { rm -f "$directory/$1.key"; fail "$directory/$1.crt exists, and is not overwritten"; }
  echo "created $directory/$1.crt and $directory/$1.key"
}

what=${1:-}
directory=${2:-}
name=${3:-}
case $what in
  authority) [ $# -eq 2 ] || usage "authority takes DIR" ;;
  server | front) [ $# -ge 4 ] || usage "$what takes DIR, NAME and at least one SAN" ;;
  client) [ $# -eq 3 ] || usage "client takes DIR and NAME" ;;
  *) usage "the first argument must be authority, server, front or client, but is '$what'" ;;
esac
[ -n "$directory" ] || usage "DIR must not be empty"
[[ ${DAYS:-1} =~ ^[1-9][0-9]*$ ]] || fail "DAYS must be a whole number from 1, but is '$DAYS'"
if [ "$what" = authority ]; then
  name=ca
  mkdir -p "$directory"
else
  [[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ && $name != ca ]] ||
    fail "NAME must consist of letters, digits, '.', '_' and '-', and not be ca, but is '$name'"
  for file in ca.crt ca.key; do
    [ -r "$directory/$file" ] || fail "$directory/$file cannot be read: make-certificates.sh authority $directory"
  done
fi
draft=$(mktemp -d "$directory/.draft.XXXXXX")
trap 'rm -rf "$draft"' EXIT

signer=(-CA "$directory/ca.crt" -CAkey "$directory/ca.key")
case $what in
  authority)
    extensions_of_authority >"$draft/extensions"
    certify ca "/O=PrivateMail/CN=PrivateMail authority" 3650 -signkey "$draft/ca.key"
    ;;
  server)
    extensions_of serverAuth "${@:4}" >"$draft/extensions"
    certify "$name" "/O=PrivateMail/CN=$name" 825 "${signer[@]}"
    ;;
  front)
    extensions_of "serverAuth, clientAuth" "${@:4}" >"$draft/extensions"
    certify "$name" "/O=PrivateMail/CN=$name" 825 "${signer[@]}"
    cat "$directory/ca.crt" >>"$draft/$name.crt"
    ;;
  client)
    extensions_of clientAuth >"$draft/extensions"
    certify "$name" "/O=PrivateMail/CN=$name" 825 "${signer[@]}"
    ;;
esac
publish "$name"
