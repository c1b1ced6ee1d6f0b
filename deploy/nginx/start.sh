#!/usr/bin/env bash
# Starts nginx in its container, and reloads it when a certificate has changed.
# PRIVATEMAIL_DAEMON: address of the daemon, by default 127.0.0.1:50052; it has HTTP on port 50054.
set -euo pipefail
daemon=${PRIVATEMAIL_DAEMON:-127.0.0.1:50052}
sed "s/127.0.0.1:50052/$daemon/; s/127.0.0.1:50054/${daemon%:*}:50054/" /etc/nginx/privatemail.conf >/tmp/privatemail.conf
# nginx does not start with an address of a protocol that the kernel lacks.
sed "$([ -e /proc/net/if_inet6 ] || echo '/listen \[::\]/d')" /etc/nginx/connections.conf >/tmp/connections.conf
# By default glibc keeps the memory of large requests.
export MALLOC_MMAP_THRESHOLD_=65536
digest() { cat /etc/nginx/privatemail/* | sha256sum; }
nginx -e stderr -g "daemon off;" &
nginx=$!
trap 'kill -QUIT $nginx; wait $nginx; exit' TERM INT QUIT
used=$(digest)
while sleep 30 & wait -n; do
  kill -0 $nginx 2>/dev/null || { wait $nginx; exit; }
  found=$(digest)
  [ "$found" = "$used" ] || { kill -HUP $nginx; used=$found; }
done
wait $nginx
