#!/bin/bash
# .ci/setup.sh GROUP...: installs the packages of .ci/packages that belong to the groups given.
#
# Happy path: all are there, and it ends in silence without touching the package manager. Else:
# apt-get update, then install what is missing, through sudo where not root.
# Where there is no apt-get, it names what is needed and leaves the verdict to the build.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "setup: neither root nor sudo here; run as root: $*" >&2
        return 1
    fi
}

missing=()
for group in "$@"; do
    while read -r package; do
        status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$status" = installed ] || missing+=("$package")
    done < <(awk -v group="$group" '$1 == group { print $2 }' "$here/packages")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "setup: no apt-get here; parley needs what Debian calls: ${missing[*]}" >&2
    exit 0
fi
echo "setup: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
# A failed update may still leave lists good enough to install from.
as_root "${apt[@]}" update >"$log" 2>&1 || { echo "setup: apt-get update failed" >&2; tail -n 5 "$log" >&2; }
if ! as_root "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    echo "setup: apt-get install failed" >&2
    exit 1
fi
