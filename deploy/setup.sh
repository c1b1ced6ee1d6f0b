#!/usr/bin/env bash
# Installs the Debian 12 packages that PrivateMail is built and tested with; no other source.
# Runs as root or with sudo. Installs nothing if all packages are there.
# usage: setup.sh [--build-only | --with-browser]
#   --build-only    only the packages of the release preset: no tests, no fuzzers, no compiler cache
#   --with-browser  also Chromium, emscripten and npm (1.5 GB), for the JavaScript package and the tests in a browser
set -euo pipefail

packages=(
  build-essential cmake ninja-build pkg-config
  libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler libabsl-dev
  libeigen3-dev libssl-dev libsqlite3-dev libboost-math-dev libboost-dev
  libcli11-dev nlohmann-json3-dev libtomlplusplus-dev
  python3-dev pybind11-dev python3-protobuf
  prometheus-cpp-dev libcivetweb-dev grpc-proto
  libpq-dev
  libfaiss-dev libopenblas-pthread-dev
  libopencv-core-dev libopencv-imgproc-dev libopencv-objdetect-dev libopencv-dnn-dev
  libjpeg62-turbo-dev libpng-dev libwebp-dev zlib1g-dev
)
case "$*" in
  --build-only) ;;
  "" | --with-browser)
    packages+=(
      ccache mold git curl
      postgresql
      libgtest-dev libgmock-dev libbenchmark-dev
      clang-14 libclang-rt-14-dev valgrind
      python3 python3-numpy python3-scipy python3-sklearn python3-grpcio openssl
      python3-matplotlib python3-jinja2 python3-tqdm python3-pandas
      nginx-light libnginx-mod-stream
      mypy python3-nbclient python3-nbformat python3-ipykernel
    )
    if [ "$*" = --with-browser ]; then
      packages+=(chromium emscripten)
      # npm fetches axe-core, the official Connect clients and more, by lock files; other packages of Node.js contain npm.
      command -v npm >/dev/null || packages+=(nodejs npm)
    fi
    ;;
  *)
    echo "setup: expected at most one of --build-only and --with-browser, got: $*" >&2
    exit 2
    ;;
esac

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
if [ "${#missing[@]}" -eq 0 ]; then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "setup: these packages are missing and neither root nor sudo is available: ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
echo "setup: installing ${#missing[@]} of ${#packages[@]} packages"
"${as_root[@]}" apt-get update -q
# Tests start their own PostgreSQL servers. Without this file the package would also create a cluster "main"
# and run it on port 5432.
if [[ " ${missing[*]} " == *" postgresql "* ]] && [ ! -e /etc/postgresql-common/createcluster.conf ]; then
  "${as_root[@]}" mkdir -p /etc/postgresql-common
  echo "create_main_cluster = false" | "${as_root[@]}" tee /etc/postgresql-common/createcluster.conf >/dev/null
fi
# Tests start their own nginx, too; the package would run one on port 80. Undone by: systemctl unmask nginx
if [[ " ${missing[*]} " == *" nginx-light "* ]] && [ ! -e /etc/systemd/system/nginx.service ]; then
  "${as_root[@]}" mkdir -p /etc/systemd/system
  "${as_root[@]}" ln -s /dev/null /etc/systemd/system/nginx.service
fi
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
