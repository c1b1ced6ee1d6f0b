# shellcheck shell=bash disable=SC2154
# A Docker engine for compose-test.sh, which sources this file: a running one, or Debian's package, started here and
# stopped by stop_engine. Needs the functions step and fail, the folder $work and, for have_base, PRIVATEMAIL_TAG. Does
# not change the machine's firewall: this engine neither forwards nor filters, and images are built in the host's
# network. packages-test.sh takes install_packages and make_base from here.

engine_pid=""

docker_answers() { docker version >/dev/null 2>&1; }

# Takes a lock, because apt-get fails while another runs; the tests of packages and containers may run side by side.
install_packages() {
  [ "$(id -u)" -eq 0 ] || fail "these packages must be installed, which only root can: $*"
  step "installing $*"
  DEBIAN_FRONTEND=noninteractive flock --close "${BASH_SOURCE[0]}" sh -c \
    'apt-get update -q && apt-get install -q -y --no-install-recommends "$@"' install "$@" >"$work/apt.log" 2>&1 ||
    { tail -20 "$work/apt.log" >&2; fail "apt-get install $*"; }
}

have_engine() {
  if docker_answers; then
    step "a Docker engine answers: $(docker version --format '{{.Server.Version}}')"
    return
  fi
  command -v dockerd >/dev/null || install_packages docker.io
  docker_answers || start_engine # the package may have started it
}

start_engine() {
  [ "$(id -u)" -eq 0 ] || fail "no Docker engine answers, and only root can start one"
  export DOCKER_HOST=unix://$work/docker.sock
  echo '{}' >"$work/daemon.json"
  dockerd --config-file "$work/daemon.json" --data-root "$work/docker" --exec-root "$work/run" \
    --pidfile "$work/docker.pid" --host "$DOCKER_HOST" --bridge none --iptables=false --ip-forward=false \
    >"$work/dockerd.log" 2>&1 &
  engine_pid=$!
  for _ in $(seq 120); do
    docker_answers && break
    kill -0 "$engine_pid" 2>/dev/null || { tail -20 "$work/dockerd.log" >&2; fail "dockerd ended"; }
    sleep .5
  done
  docker_answers || { tail -20 "$work/dockerd.log" >&2; fail "dockerd does not answer"; }
  step "started a Docker engine, process $engine_pid: $(docker version --format '{{.Server.Version}}')"
}

stop_engine() {
  [ -n "$engine_pid" ] || return 0
  kill "$engine_pid"
  wait "$engine_pid" || true
  umount "$work/run/netns/default" # the only mount that an engine leaves
  step "stopped the engine, process $engine_pid"
  engine_pid=""
}

# Sets the array compose_tool to either generation of the tool.
have_compose() {
  if command -v docker-compose >/dev/null; then
    compose_tool=(docker-compose)
  elif docker compose version >/dev/null 2>&1; then
    compose_tool=(docker compose)
  else
    install_packages docker-compose
    compose_tool=(docker-compose)
  fi
  step "$("${compose_tool[@]}" version --short | sed 's/^/compose /')"
}

# Sets DEBIAN, the base image: debian:bookworm-slim if it can be pulled and apt works in it, otherwise one made from
# this machine's package sources.
have_base() {
  DEBIAN=debian:bookworm-slim
  if { docker image inspect "$DEBIAN" || docker pull "$DEBIAN"; } >/dev/null 2>&1 &&
    docker run --rm --network host "$DEBIAN" apt-get update -q >/dev/null 2>&1; then
    step "base image: $DEBIAN"
  else
    DEBIAN=privatemail-base:$PRIVATEMAIL_TAG
    import_base
    step "base image: $DEBIAN, made from this machine's package sources"
  fi
  export DEBIAN
}

# Like debian:bookworm-slim without documentation and translations, but for licences, here and in later packages.
import_base() {
  make_base "$work/base"
  printf 'path-%s\n' 'exclude /usr/share/doc/*' 'include /usr/share/doc/*/copyright' 'exclude /usr/share/man/*' \
    'exclude /usr/share/locale/*' >"$work/base/etc/dpkg/dpkg.cfg.d/slim"
  find "$work/base/usr/share/doc" ! -type d ! -name copyright -delete
  rm -rf "$work"/base/usr/share/{man,locale}/* "$work"/base/var/{lib/apt/lists,cache/apt/archives}/*
  tar -C "$work/base" -c . | docker import - "$DEBIAN" >/dev/null
  rm -rf "$work/base"
}

# Makes a Debian 12 with this machine's package sources.
make_base() { # ROOT
  local release mirror root=$1
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  [ "$release" = bookworm ] ||
    fail "no Debian 12: this machine is none, and debian:bookworm-slim cannot be pulled, or apt does not work in it"
  command -v debootstrap >/dev/null || install_packages debootstrap
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 'Created-By: Packages' | head -1)
  eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
  http_proxy=${http_proxy:-} https_proxy=${https_proxy:-} \
    debootstrap --variant=minbase bookworm "$root" "${mirror:?apt names no source for bookworm}" \
    >"$work/debootstrap.log" 2>&1 || { tail -5 "$work/debootstrap.log" >&2; fail "debootstrap"; }
  copy_apt_configuration "$root"
}

# Copies apt's sources, proxies and trusted keys. Not its hooks, which may call programs that the image lacks.
copy_apt_configuration() { # ROOT
  local name
  rm -f "$1/etc/apt/sources.list"
  for name in sources.list preferences auth.conf trusted.gpg; do
    [ ! -e "/etc/apt/$name" ] || cp -aL "/etc/apt/$name" "$1/etc/apt/"
    [ ! -d "/etc/apt/$name.d" ] || cp -aL "/etc/apt/$name.d" "$1/etc/apt/"
  done
  [ ! -d /etc/apt/keyrings ] || cp -aL /etc/apt/keyrings "$1/etc/apt/"
  cp -aLn /usr/share/keyrings "$1/usr/share/"
  apt-config dump | grep '^Acquire::' | grep -vE '^Acquire::(IndexTargets|Changelogs)' \
    >"$1/etc/apt/apt.conf.d/90host" || true # no such line
  mkdir -p "$1/etc/ssl/certs" "$1/usr/local/share/ca-certificates"
  [ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"
  [ ! -d /usr/local/share/ca-certificates ] ||
    cp -aL /usr/local/share/ca-certificates/. "$1/usr/local/share/ca-certificates/"
}
