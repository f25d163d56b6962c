#!/bin/bash
# seeds.sh PARLEY: the peer list is read again, after SIGHUP and for names that change in DNS; and
# where the resolver does not answer, a node hears its signals and ends all the same.

# In a network of its own, whose resolver is ours, where that can be had.
if [ -z "${apart-}" ]; then
    for apart in 'unshare -n -m' 'unshare -r -n -m' no; do
        # shellcheck disable=SC2086
        if [ "$apart" = no ] || $apart true 2> /dev/null; then break; fi
    done
    export apart
    # shellcheck disable=SC2086
    [ "$apart" = no ] || exec $apart "$0" "$@"
fi
source "$(dirname "$0")/nodes.sh"

settings=(--model mlp:8 --time 600s --min-peers 1)

# end PID...: by a signal, and much sooner than a look-up gives up.
end() {
    local pid
    kill -TERM "$@"
    for pid; do
        timeout 40 tail -f /dev/null --pid="$pid" || { echo "$pid goes on"; return 1; }
        wait "$pid"
    done
}

if [ "$apart" != no ]; then
    cat > resolver.py << 'END'
import fcntl, socket, struct
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(server, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
server.bind(("127.0.0.1", 53))
print("ready", flush=True)
while True:
    query, asker = server.recvfrom(512)
    addresses = open("answer").read().split()
    if not addresses:
        print("no answer", flush=True)
        continue
    question = query[12:query.index(b"\0", 12) + 5]
    known = question[-4:-2] == b"\0\1"  # its A record; there is no AAAA
    reply = query[:2] + b"\x81\x80" + struct.pack("!4H", 1, known * len(addresses), 0, 0) + question
    for address in addresses * known:
        reply += b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(address)
    server.sendto(reply, asker)
END
    : > asked
    python3 resolver.py > asked 2>&1 &
    resolver=$!
    until_said asked "$resolver" ready
fi

# After SIGHUP a file is read again; one with a bad line changes nothing.
start b
b=$pid
until_line b "$b" '"event":"started"'
echo '127.0.0.1:1' > peers
start a --peers peers
a=$pid
until_line a "$a" '"event":"started"'
echo 'nowhere' > peers
kill -HUP "$a"
until_said a.err "$a" 'the peer list stays as it was: peers: line 1 '
printf '127.0.0.1:1\n%s\n' "$(address_of b)" > peers
kill -HUP "$a"
until_said a.err "$a" 'read the peer list again: 2 addresses'
until_line a "$a" '"phase":"train"'
end "$a" "$b"

if [ "$apart" = no ]; then
    echo "names in DNS are passed over: unshare -n -m does not work here"
    exit 77
fi

# answer ADDRESS...: for every name, from now on. Of none there is no answer at all.
answer() {
    echo "$*" > next
    mv next answer
}

echo 'hosts: dns' > nsswitch.conf
printf 'nameserver 127.0.0.1\noptions timeout:30 attempts:5\n' > resolv.conf
for file in nsswitch.conf resolv.conf; do
    if [ -e "/etc/$file" ]; then mount --bind "$file" "/etc/$file"; fi
done

# On one link: peers tell each other addresses without its name, which is each machine's own.
if ip -6 addr add fe80::1/64 dev lo nodad 2> /dev/null; then
    start a --insecure --listen '[fe80::1%lo]:0' --min-peers 0
    a=$pid
    until_line a "$a" '"event":"started"'
    start b --insecure --listen '[fe80::1%lo]:0' --join "$(address_of a)"
    b=$pid
    until_line b "$b" '"phase":"train"'
    end "$a" "$b"
    # So they do where --advertise is what names it, and they dial by it.
    start a --insecure --listen '[::]:7401' --advertise '[fe80::1%lo]:7401' --min-peers 0
    a=$pid
    until_said a.err "$a" '--join \[fe80::1]:7401 '
    start b --insecure --listen '[::]:7402' --advertise '[fe80::1%lo]:7402' --join '[fe80::1]:7401'
    b=$pid
    until_line b "$b" '"phase":"train"'
    end "$a" "$b"
    # Where nothing names one of this machine, that is said, of whichever address.
    start a --join '[fe80::1%none]:7401'
    a=$pid
    until_said a.err "$a" 'seed \[fe80::1%none]:7401: it names no link of this machine'
    end "$a"
    expect 4 'it names no link of this machine' status '[fe80::1]:7401'
    for how in '[fe80::1%none]:7401' '[::]:7401 --advertise [fe80::1]:7401'; do
        # shellcheck disable=SC2086
        start a --insecure --listen $how
        wait "$pid" && exit 1
        grep -qF '[fe80::1' a.err
        grep -qF 'it names no link of this machine' a.err
    done
fi

# Who waits for the address to listen on has joined nobody yet: a signal ends it at once.
answer ''
start a --insecure --listen nowhere.test:0
a=$pid
until_said asked "$a" 'no answer'
kill -TERM "$a"
timeout 20 tail -f /dev/null --pid="$a" || { echo "$a goes on"; exit 1; }
wait "$a" && exit 1
answer 127.0.0.3
start a --insecure --listen somewhere.test:0 --min-peers 0
a=$pid
until_line a "$a" '"listen":"127\.0\.0\.3:'
end "$a"

# A name of all nodes leads each to another one, though its own address stands there more often.
answer 127.0.0.2 127.0.0.3 127.0.0.3 127.0.0.3 127.0.0.3 127.0.0.3 127.0.0.3 127.0.0.3
start a --insecure --listen 127.0.0.2:7403 --join all.test:7403
a=$pid
until_line a "$a" '"event":"started"'
start b --insecure --listen 127.0.0.3:7403 --join all.test:7403 --min-peers 0
b=$pid
until_line b "$b" '"phase":"train"'
sed '/"phase":"train"/q' b.json | grep -q '"peer":"a","state":"alive"'
end "$a" "$b"

# Where a name has moved to is dialled.
start b
b=$pid
until_line b "$b" '"event":"started"'
port=$(address_of b)
port=${port##*:}
answer 127.0.0.2
echo '127.0.0.1:1' > peers
start a --join "dns:seeds.test:$port" --peers peers
a=$pid
until_said a.err "$a" "seed 127\.0\.0\.2:$port: connection refused"

# A file that is bad meanwhile is so at each look-up, and that is said once. Where such a name comes by
# SIGHUP it is looked up again as well.
echo 'nowhere' > peers
until_said a.err "$a" 'the peer list stays as it was: peers: line 1 '
echo '127.0.0.1:1' > later
start c --peers later
c=$pid
until_line c "$c" '"event":"started"'
echo "dns:seeds.test:$port" > later
kill -HUP "$c"
until_said c.err "$c" "seed 127\.0\.0\.2:$port: connection refused"
answer 127.0.0.1
until_line c "$c" '"phase":"train"'
[ "$(grep -c 'the peer list stays as it was' a.err)" -eq 1 ]

# Nobody waits for a look-up that may take minutes.
answer ''
until_said asked "$resolver" 'no answer'
end "$a" "$b" "$c"
