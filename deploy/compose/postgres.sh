#!/usr/bin/env bash
# The service `postgres`: creates the database at its first start and serves it. Network clients need TLS and a
# certificate that names the role; there is no password.
set -euo pipefail
umask 077
root=/var/lib/postgresql/15
data=$root/main

# An interrupted first start begins again.
make_database() {
  rm -rf "$root/draft"
  initdb --pgdata "$root/draft" --username postgres --auth-local peer --auth-host reject --data-checksums \
    --encoding UTF8 --locale C.UTF-8 --no-instructions
  cat >"$root/draft/pg_hba.conf" <<END
local   all          postgres          peer
hostssl privatemail  privatemail  all  cert
END
  postgres --single -D "$root/draft" postgres >/dev/null <<END
CREATE ROLE privatemail LOGIN
CREATE DATABASE privatemail OWNER privatemail
END
  mv "$root/draft" "$data"
}

[ -e "$data" ] || make_database
exec postgres -D "$data" -c listen_addresses='*' -c ssl=on -c ssl_min_protocol_version=TLSv1.2 \
  -c ssl_ca_file=/certificates/ca.crt -c ssl_cert_file=/certificates/postgres.crt \
  -c ssl_key_file=/certificates/postgres.key
