#!/bin/bash
# key.sh PARLEY: a cluster with a key: its nodes agree, and nobody else gets in or hears a word.
source "$(dirname "$0")/nodes.sh"

settings=(--model mlp:64 --min-peers 1 --no-lane)

# A key is its owner's, and never written over.
umask 0
"$parley" keygen key
"$parley" keygen other
[ "$(stat -c %a key)" = 600 ]
grep -qxE '[0-9a-f]{64}' key
if cmp -s key other; then echo "two keys are one"; exit 1; fi
cp key before
expect 2 'it is there already' keygen key
cmp key before
expect 1 'keygen: nowhere/key: No such file' keygen nowhere/key
status=0
said=$( (ulimit -f 0 && exec "$parley" keygen half) 2>&1) || status=$?
[ $status -eq 1 ]
[ "$said" = 'parley: keygen: half: File too large' ]
[ ! -e half ]
expect 2 'parley keygen needs FILE' keygen
expect 2 'not written to stdout' keygen -
expect 2 '"" is empty: parley keygen takes FILE' keygen ''

expect 2 '--cluster-key: nokey: No such file' status 127.0.0.1:1 --cluster-key nokey
expect 2 'cluster key: nokey: No such file' node --model mlp:8 --cluster-key nokey
head -c 40 key > half
expect 2 'half: not a key of 64 hexadecimal digits' node --model mlp:8 --cluster-key half

# With a key a node may listen where other machines reach it.
"$parley" node --model mlp:8 --steps 1 --cluster-key key --listen 0.0.0.0:0 \
    --advertise 127.0.0.1:1 --out alone > out 2> err || { cat err; exit 1; }

# One that others can read is taken, with a word about it.
if grep chmod err; then exit 1; fi
cp key open
chmod 640 open
"$parley" node --model mlp:8 --steps 1 --cluster-key open --out alone > out 2> err
grep -qx 'parley: --cluster-key: others on this machine can read open: chmod 600 open' err

start a --epochs 30 --cluster-key key
until_line a "$pid" '"event":"started"'
a=$pid address=$(address_of a)
until_said a.err "$a" 'parley: the next node: '
grep -q '^parley: the next node: .* --cluster-key=key ' a.err

expect 5 'it has a cluster key: say with --cluster-key which' status "$address"
expect 5 'it has another cluster key, or none' status "$address" --cluster-key other
"$parley" status "$address" --cluster-key key | grep -q '^a  *alive '
expect 5 "seed $address: it has a cluster key, and this node has none" \
    node --model mlp:64 --join "$address"
expect 5 "seed $address: it has another cluster key, or none" \
    node --model mlp:64 --join "$address" --cluster-key other
until_said a.err "$a" 'is turned away: it has another cluster key, or none'
if grep -q '"known":2' a.json; then echo "a stranger became known"; exit 1; fi

start b --epochs 30 --cluster-key key --join "$address"
for pid in "$a" "$pid"; do wait "$pid" || { cat a.err b.err; exit 1; }; done
grep -q '^agreed    2 of 2 nodes' a.out
cmp a.safetensors b.safetensors
"$parley" model verify a.safetensors > /dev/null

# Nor does a node with a key talk to one that has none.
start c --time 600s
until_line c "$pid" '"event":"started"'
expect 4 'the connection ended in the handshake: has it no cluster key?' \
    node --model mlp:64 --join "$(address_of c)" --join-timeout 2s --cluster-key key
expect 4 'the connection ended in the handshake' status "$(address_of c)" --cluster-key key
until_said c.err "$pid" 'is turned away: it has a cluster key, and this node has none'
if grep -q 'break the format' c.err; then cat c.err; exit 1; fi
kill -TERM "$pid"
wait "$pid"

# Over a long line the floats of a link may take several connections, sealed as the link itself is.
# until_connected FILE PID PORT COUNT: so many TCP connections of others to that port.
until_connected() {
    local port
    port=$(printf '%04X' "$3")
    while read -r _; do
        [ "$(awk -v at=":$port\$" '$2 ~ at && $4 == "01"' /proc/net/tcp | wc -l)" -lt "$4" ] || return 0
    done < <(exec tail -n +1 -f --pid="$2" "$1")
    echo "fewer than $4 connections"
    return 1
}
start d --model mlp:1000,1000 --time 600s --streams 4 --cluster-key key
d=$pid
until_line d "$d" '"event":"started"'
address=$(address_of d)
start e --model mlp:1000,1000 --time 600s --streams 8 --cluster-key key --join "$address"
e=$pid
until_connected e.json "$e" "${address##*:}" 5
until_said d.json "$d" '"exchanges":[1-9]'

# Who presents itself as such a connection, and has no key, hears no more than that it lacks one.
exec 3<> "/dev/tcp/${address%:*}/${address##*:}"
printf 'Ps\1\0\0\0\0\0 a token and a megabyte of floats' >&3
[ "$(timeout 60 od -An -tx1 <&3 | tr -d ' \n')" = 15030300020246 ]
exec 3>&-
kill -USR2 "$d"
for pid in "$d" "$e"; do wait "$pid" || { cat d.err e.err; exit 1; }; done
grep -q '^agreed    2 of 2 nodes' d.out
cmp d.safetensors e.safetensors

# What stands at a seed's address and is no node, as a server of HTTP, has no key either, but that is not
# what is wrong with it: it may be another program by the next try.
python3 - > port << 'END' &
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    peer = server.accept()[0]
    peer.recv(1)
    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    peer.shutdown(socket.SHUT_WR)
    while True:
        try:
            if not peer.recv(4096): break
        except OSError: break
    peer.close()
END
server=$!
until_said port $server .
port=$(cat port)
for key in '' --cluster-key=key; do
    expect 4 "seed 127.0.0.1:$port: answers in another protocol; is it a parley node?; next try in " \
        node --model mlp:64 --join "127.0.0.1:$port" --join-timeout 2s $key
    if grep -E 'break the format|another cluster key' err; then exit 1; fi
done
kill $server
