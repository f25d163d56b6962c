#!/bin/bash
# examples/quickstart.sh [OPTION...]: from a fresh Debian 12 to a trained model.
#
# Installs what the build needs, builds into build/, then runs `parley run` with your options on
# the built-in data: four nodes on this machine that train, average and agree on one model.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/.ci/setup.sh" build

log=$(mktemp)
trap 'rm -f "$log"' EXIT
build() {
    [ -f "$root/build/build.ninja" ] ||
        meson setup "$root/build" "$root" --buildtype=release -Dtests=disabled || return
    ninja -C "$root/build"
}
echo "quickstart: building in $root/build" >&2
if ! build >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "quickstart: the build failed" >&2
    exit 1
fi
rm -f "$log"
exec "$root/build/peers/parley" run "$@"
