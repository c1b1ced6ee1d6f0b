#!/usr/bin/env bash
# The service `certificates`: creates an authority for PrivateMail's callers, one for its daemons and one for its
# database, and gives each container its own key only. Existing files are kept. Runs as root, without network.
#   /authority   volume of this container only: the authorities' keys and the originals
#   /for/NAME    volume that container NAME reads
set -euo pipefail
umask 022 # for folders that others read; make-certificates.sh sets its own

make_all() { # DIR
  make-certificates.sh authority "$1/service"
  make-certificates.sh server "$1/service" server privatemaild localhost 127.0.0.1
  local client
  for client in proxy importer searcher; do
    make-certificates.sh client "$1/service" "$client"
  done
  make-certificates.sh authority "$1/daemons"
  make-certificates.sh front "$1/daemons" privatemaild privatemaild localhost
  make-certificates.sh server "$1/daemons" shard shard-1 shard-2
  make-certificates.sh authority "$1/database"
  make-certificates.sh server "$1/database" postgres postgres
  make-certificates.sh client "$1/database" privatemail # the database role
}

# The folder stays root's, so that the container cannot add files.
give() { # CONTAINER USER FILE...
  local file
  for file in "${@:3}"; do
    rm -f "/for/$1/${file##*/}"
    cp "$file" "/for/$1/"
    chmod 400 "/for/$1/${file##*/}"
    chown "$2:$2" "/for/$1/${file##*/}" # last, because afterwards this root may not change it
  done
}

# Contains no password, because a certificate is used; the daemon requires a private file anyway.
connection_to_database() {
  echo "host=postgres dbname=privatemail user=privatemail sslmode=verify-full" \
    "sslrootcert=/certificates/database-ca.crt" \
    "sslcert=/certificates/privatemail.crt sslkey=/certificates/privatemail.key"
}

if [ ! -e /authority/made/daemons ]; then
  rm -rf /authority/draft /authority/made
  mkdir /authority/draft
  make_all /authority/draft
  mv /authority/draft /authority/made
fi
cd /authority/made
cp database/ca.crt database-ca.crt
connection_to_database >conninfo
give privatemaild 10001 service/ca.crt daemons/privatemaild.{crt,key} database-ca.crt database/privatemail.{crt,key} \
  conninfo
give shard 10001 daemons/{ca.crt,shard.crt,shard.key} database-ca.crt database/privatemail.{crt,key} conninfo
give postgres 10002 database/{ca.crt,postgres.crt,postgres.key}
cp daemons/ca.crt daemon.crt
give proxy 10001 service/server.{crt,key} daemon.crt service/{ca.crt,proxy.crt,proxy.key} /etc/nginx/client-certificates.conf
for client in importer searcher; do
  give "$client" 10001 service/{ca.crt,"$client.crt","$client.key"}
done
chown 10001:10001 /for/searcher-key # empty: the importer makes the key
touch /tmp/ready
echo "certificates: every container has its own"

# With --exit-code-from Compose stops everything when one container ends, so this one sleeps.
trap 'exit 0' TERM INT
sleep infinity &
wait
