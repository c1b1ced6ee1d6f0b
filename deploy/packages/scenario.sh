#!/usr/bin/env bash
# Uses the installed packages in a root without systemd, and then removes them; packages-test.sh runs it there.
set -euo pipefail
cd /work
fail() { echo "scenario: FAILED: $*" >&2; cat daemon.log >&2 || true; exit 1; }
data=/var/lib/privatemail
export PRIVATEMAIL_SERVER=127.0.0.1:50051 PRIVATEMAIL_STATE=/work/state PRIVATEMAIL_KEY_FILE=$data/admin.key
older=(qemu-x86_64 -cpu qemu64) # a processor without AVX

# What systemd does for DynamicUser and StateDirectory; 61184 is the first of its dynamic users.
install -d -m 0700 -o 61184 -g 61184 "$data"
read -ra command < <(sed -n 's/^ExecStart=//p' /lib/systemd/system/privatemaild.service)
setpriv --reuid 61184 --regid 61184 --clear-groups --no-new-privs "${command[@]}" --http-listen 127.0.0.1:50080 >daemon.out 2>daemon.log &
daemon=$!
until grep -qs '^listening' daemon.out || ! kill -0 $daemon; do sleep .1; done
PRIVATEMAIL_TRUST=$(sed -n 's/^trust this server with: --trust //p' daemon.out)
export PRIVATEMAIL_TRUST
expected=/usr/libexec/privatemaild folder=privatemail
if grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo; then
  expected=/usr/libexec/privatemaild-x86-64-v3 folder=x86-64-v3
fi
[ "$(readlink /proc/$daemon/exe)" = "$expected" ] || fail "the daemon is $(readlink /proc/$daemon/exe), not $expected"

python3 - <<'PY'
import numpy as np
rng = np.random.default_rng(1)
centres = rng.normal(size=(5, 16))
for name, rows in ("anchors", 100), ("gallery", 300):
    labels = np.arange(rows) % 5
    np.save(name, (centres[labels] + .4 * rng.normal(size=(rows, 16))).astype("float32"))
    np.save(name + "-labels", labels)
PY
privatemail collection create fruit --anchors anchors.npy --anchor-labels anchors-labels.npy
privatemail ingest fruit --vectors gallery.npy --labels gallery-labels.npy
privatemail build fruit
privatemail budget set fruit --epsilon 10 --delta 1e-4
query=(query fruit --vectors gallery.npy --row 1 --label 1 --epsilon 1 --delta 1e-5 --json)
privatemail "${query[@]}" | grep '"id":' >/dev/null || fail "a query by the command line"
# The emulator leaves an exec to the real processor, so launcher and program run apart.
"${older[@]}" -strace /usr/bin/privatemail --version 2>&1 | grep 'execve("/usr/libexec/privatemail",' >/dev/null ||
  fail "the launcher on an older processor"
"${older[@]}" /usr/libexec/privatemail "${query[@]}" | grep '"id":' >/dev/null || fail "a query on an older processor"
"${older[@]}" /usr/libexec/privatemaild --version || fail "the daemon there"
if "${older[@]}" /usr/libexec/privatemail-x86-64-v3 "${query[@]}" >/dev/null 2>&1; then
  fail "$(printf '%s ' "${older[@]}") runs programs for newer processors, so it shows nothing"
fi

cmake -S tests/e2e/outside_program -B build -G Ninja >/dev/null
cmake --build build >build.log || fail "the SDK's example: $(tail build.log)"
[ -n "$(build/example "$PRIVATEMAIL_SERVER" "$PRIVATEMAIL_TRUST" "$PRIVATEMAIL_KEY_FILE" fruit joint)" ] ||
  fail "a query by C++"
cmake -S tests/e2e/outside_program -B build -DPRIVATEMAIL_ARCH=x86-64-v3 >/dev/null
ninja -C build -t commands example | grep x86-64-v3/libprivatemail_numerics.a >/dev/null ||
  fail "the SDK does not take the archives for newer processors"
cmake --build build >build.log || fail "the SDK for newer processors: $(tail build.log)"

python3 - "$folder" <<'PY'
import os, pathlib, sys
import numpy as np, privatemail as pm
from privatemail import _native
trust, key_file = os.environ["PRIVATEMAIL_TRUST"], os.environ["PRIVATEMAIL_KEY_FILE"]
client = pm.connect("127.0.0.1:50051", trust=trust, key_file=key_file)
hits = client.collection("fruit").search(np.load("gallery.npy")[1], label=1, epsilon=1, delta=1e-5)
assert len(hits.ids) > 0
assert pathlib.Path(_native.__file__).parent.name == sys.argv[1], _native.__file__
PY
python3 -c 'import pathlib, sys
from privatemail.evaluation import _seeded, _native
assert pathlib.Path(_native.__file__).parent.parent.name == sys.argv[1], _native.__file__' "$folder"
# Ends for want of recommended packages.
{ privatemail evaluate 2>&1 || true; } | grep /usr/lib/python3/dist-packages/privatemail/evaluation/ >/dev/null ||
  fail "the evaluation is not found"

# Over HTTP, by the C library and by JavaScript.
privatemail collection create pears
privatemail ingest pears --vectors gallery.npy
cc -std=c11 /usr/share/doc/privatemail/examples/example.c -lprivatemail_encrypted -o c-example
python3 -c 'import numpy; print(*numpy.load("gallery.npy")[1])' >row.txt
found=$(./c-example http://127.0.0.1:50080 "$PRIVATEMAIL_KEY_FILE" pears 3 <row.txt | cut -d' ' -f1 | paste -sd,)
[ "${found%%,*}" = 1 ] || fail "a query by C found $found"
cat >search.mjs <<'JS'
import {readFileSync} from "node:fs";
import {connect} from "privatemail";
const [keyFile, rowFile] = process.argv.slice(2);
const connection = connect("http://127.0.0.1:50080", {key: readFileSync(keyFile, "utf8").trim()});
const row = readFileSync(rowFile, "utf8").trim().split(" ").map(Number);
const {matches} = await connection.collection("pears").search(row, {k: 3});
console.log(matches.map(({id}) => id).join());
await connection.close();
JS
[ "$(node search.mjs "$PRIVATEMAIL_KEY_FILE" row.txt)" = "$found" ] || fail "a query by JavaScript"

kill $daemon
wait $daemon || fail "the daemon ended with $?"
[ "$(stat -c '%a %u' "$data")" = "700 61184" ] || fail "the data belong to others"

packages=(privatemail privatemaild libprivatemail-dev python3-privatemail libprivatemail-encrypted0)
left() {
  find /etc /lib /usr /var \( -path /var/lib/dpkg -o -path "$data/*" \) -prune -o -name '*privatemail*' -print
}
dpkg --remove "${packages[@]}" >/dev/null
[ -e /etc/privatemail/privatemaild.toml ] || fail "the removal took the configuration"
! left | grep -E '^/(lib|usr)/' || fail "the removal left files"
dpkg --purge "${packages[@]}" >purge.log 2>&1
[ "$(left)" = "$data" ] || fail "after the purge: $(left)"
[ -s "$data/privatemail.sqlite" ] || fail "the purge took the data"
grep -q "stay in $data" purge.log || fail "the purge does not tell where the data are"
dpkg --install /packages/privatemaild_*.deb >/dev/null
PRIVATEMAIL_PURGE_DATA=1 dpkg --purge privatemaild >/dev/null
[ -z "$(left)" ] || fail "after the purge of the data: $(left)"
