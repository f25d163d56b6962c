#!/bin/bash
# tests/machines.sh arm64|armhf: parley on another kind of machine, under emulation.
#
# Builds it for Debian 12 there, in build-ARCH/. Then: lives of the swarm are the same there and
# here, event by event; and two nodes of each kind are one cluster and end with one model, which
# each kind verifies. Some minutes; needs root once, for debootstrap. What is there already is used
# again. The exit status is 1 if anything differs.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
arm64) tools=aarch64-linux-gnu family=aarch64 emulator=qemu-aarch64-static ;;
armhf) tools=arm-linux-gnueabihf family=arm emulator=qemu-arm-static ;;
*) sed -n '2s/^# //p' "$0" >&2; exit 2 ;;
esac
./.ci/setup.sh build machines "machines-$1"
build=$PWD/build-$1 root=$PWD/build-$1/root libraries=root/usr/lib/$tools
mkdir -p "$build"

# Its packages are unpacked, not set up: nothing of them runs but the libraries.
unpack() {
    local sudo=() names
    [ "$(id -u)" = 0 ] || sudo=(sudo)
    names=$(awk '$1 == "build" && $2 ~ /-dev$/ { print $2 }' .ci/packages | paste -sd,)
    "${sudo[@]}" debootstrap --foreign --arch="$1" --variant=minbase --include="$names" bookworm \
        "$root.new" >"$build/debootstrap.log" 2>&1 ||
        { tail -n 5 "$build/debootstrap.log" >&2; exit 1; }
    "${sudo[@]}" chown -R "$(id -u)" "$root.new"
    for package in "$root.new"/var/cache/apt/archives/*.deb; do
        dpkg -x "$package" "$root.new"
    done
    # Links lead out of the root, to this machine's own libraries.
    find "$root.new/usr/lib/$tools" -maxdepth 1 -type l -lname '/*' | while read -r link; do
        ln -sf "../../..$(readlink "$link")" "$link"
    done
    mv "$root.new" "$root"
}

set_up() {
    cat >"$build/cross.ini" <<END
[binaries]
c = ['$tools-gcc', '--sysroot=$root']
ar = '$tools-ar'
pkgconfig = 'pkg-config'
[properties]
sys_root = '$root'
pkg_config_libdir = '$build/$libraries/pkgconfig:$build/$libraries/openblas-serial/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = '$family'
cpu = '$family'
endian = 'little'
END
    meson setup "$build/there" --cross-file "$build/cross.ini" --buildtype=release -Dtests=disabled &&
        meson setup "$build/here" --buildtype=release -Dtests=disabled
}

[ -d "$root" ] || unpack "$1"
[ -f "$build/here/build.ninja" ] || set_up >"$build/setup.log" 2>&1 || { cat "$build/setup.log"; exit 1; }
for side in here there; do
    ninja -C "$build/$side" peers/parley >"$build/build.log" 2>&1 ||
        { tail -n 40 "$build/build.log"; exit 1; }
done
# The emulator's settings: parley starts itself anew, and its kernels are chosen by that.
export QEMU_LD_PREFIX=$root QEMU_SET_ENV=LD_LIBRARY_PATH=$build/$libraries/openblas-serial
here=("$build/here/peers/parley")
there=("$emulator" "$build/there/peers/parley")
"${there[@]}" --version
source tests/process/nodes.sh "${here[0]}"

"${here[@]}" sim --swarm --seeds 1..100 --tally lives.here >lives.log
"${there[@]}" sim --swarm --seeds 1..100 --tally lives.there
cmp <(sort lives.here) <(sort lives.there)
echo "lives are the same here and there, event by event"

start() {
    local name=$1
    shift
    : >"$name.json"
    timeout 300 "$@" node --name "$name" --model softmax --epochs 6 --min-peers 3 --out "$name" \
        --json "$name.json" ${seed:+--join "$seed"} >"$name.err" 2>&1 &
    pids+=($!)
}
start here1 "${here[@]}"
until_line here1 "${pids[0]}" '"event":"started"'
seed=$(address_of here1)
start here2 "${here[@]}"
start there1 "${there[@]}"
start there2 "${there[@]}"
for pid in "${pids[@]}"; do wait "$pid"; done
pids=()
grep -h '^agreed' ./*.err
for model in here2 there1 there2; do cmp here1 $model; done
"${here[@]}" model verify there1
"${there[@]}" model verify here1
echo "one model, here and there"
