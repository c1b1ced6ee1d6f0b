#!/usr/bin/env bash
# Tests the Debian packages, the Python wheel and the npm package: builds them, installs the packages in a fresh Debian 12 and there runs
# the daemon as packaged, a query by command line, C++, Python, C and JavaScript each, and removes and purges them. Runs as root;
# removes everything it made but the builds in build/. Exit code 0 if every check passed.
# usage: packages-test.sh
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d /tmp/pm.XXXXXX)
root=$work/root
isolation=()
step() { printf '== %s\n' "$*"; }
fail() { echo "packages-test: FAILED: $*" >&2; exit 1; }
# shellcheck source=deploy/compose/engine.sh
. deploy/compose/engine.sh
finish() {
  local code=$?
  trap - EXIT
  rm -rf --one-file-system "${work:?}" _skbuild privatemail.egg-info || code=1
  [ "$code" -ne 0 ] || step "passed"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Runs a command in the root, without systemd. Its processes and mounts end with it.
inside() { # COMMAND...
  unshare "${isolation[@]}" --mount --pid --fork --kill-child bash -c \
    'ip link set lo up && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" "$@"
}
quietly() { # COMMAND...
  "$@" >"$work/log" 2>&1 || { tail -40 "$work/log" >&2; fail "$*"; }
}

build_packages() {
  step "building packages"
  quietly cmake --preset release -DPRIVATEMAIL_ARCH=x86-64-v3
  quietly cmake --build --preset release
  quietly cmake --preset packages -DPRIVATEMAIL_JS=ON
  quietly cmake --build --preset packages
  quietly cpack --preset packages -B "$work/packages"
  version=$(sed -n 's/^project(privatemail VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  for name in privatemail privatemaild libprivatemail-dev python3-privatemail libprivatemail-encrypted0; do
    [ -e "$work/packages/${name}_$version-1_amd64.deb" ] ||
      fail "no package $name of version $version: $(ls "$work/packages")"
  done
  quietly npm pack build/packages/client/js/privatemail --pack-destination "$work"
  [ "$(stat -c %s build/packages/client/js/core.wasm)" -lt 200000 ] || fail "core.wasm has 200 kB or more"
  step "lintian"
  lintian --allow-root --fail-on error "$work"/packages/*.deb || fail lintian
}

# Without a network, as scikit-build would otherwise download what is missing.
build_wheel() {
  step "building the wheel"
  quietly unshare --net /usr/bin/python3 -m pip wheel --no-build-isolation --no-deps --wheel-dir "$work/wheel" .
  quietly /usr/bin/python3 -m pip install --no-deps --no-index --target "$work/site" "$work"/wheel/*.whl
  found=$(cd / && PYTHONPATH=$work/site /usr/bin/python3 -c "
import importlib.metadata, privatemail
print(privatemail.__file__, privatemail.__version__, importlib.metadata.version('privatemail'))")
  [ "$found" = "$work/site/privatemail/__init__.py $version $version" ] || fail "the wheel's package is $found"
  PYTHONPATH=$work/site /usr/bin/python3 -P -m privatemail.evaluation --version || fail "the wheel's evaluation"
}

[ "$(id -u)" -eq 0 ] || fail "only root can make a root for the packages"
needed=()
command -v npm >/dev/null || needed=(npm)
for package in debootstrap emscripten lintian file help2man iproute2 \
  python3-pip python3-setuptools python3-skbuild python3-wheel; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || needed+=("$package")
done
[ "${#needed[@]}" -eq 0 ] || install_packages "${needed[@]}"
build_packages
build_wheel
step "a fresh Debian 12"
make_base "$root"
cp -a "$work/packages" "$root/packages"
quietly inside apt-get update -q
DEBIAN_FRONTEND=noninteractive quietly inside sh -c \
  'apt-get install -q -y --no-install-recommends /packages/*.deb g++ cmake ninja-build qemu-user curl nodejs'
mkdir -p "$root/work/client" "$root/work/tests/e2e"
cp -a client/sdk "$root/work/client/sdk"
cp -a tests/e2e/outside_program "$root/work/tests/e2e/"
cp -a deploy/packages/scenario.sh "$root/work/"
mkdir -p "$root/work/node_modules/privatemail"
tar -C "$root/work/node_modules/privatemail" --strip-components=1 -xzf "$work"/privatemail-"$version".tgz
isolation=(--net) # the packaged configuration names a port
inside bash /work/scenario.sh || fail "the installed packages"
