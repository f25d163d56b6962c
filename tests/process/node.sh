#!/bin/bash
# node.sh PARLEY: single nodes: joining, status, nonsense on the port, refusals, what is said.
source "$(dirname "$0")/terminal.sh"
source "$(dirname "$0")/nodes.sh"

settings=(--model mlp:32)

start a --time 600s --min-peers 1
a=$pid
until_line a "$a" '"event":"started"'
address=$(address_of a)
head -n 1 a.json | grep -q '"event":"started"'

# It is found by its name, though it has started itself once more.
[ "$(cat "/proc/$a/comm")" = parley ]

# Nonsense leaves the node undisturbed, before and after HELLO's place.
head -c 20000 /dev/urandom > "/dev/tcp/${address%:*}/${address##*:}" || true
printf 'GET / HTTP/1.1\r\n\r\n' > "/dev/tcp/${address%:*}/${address##*:}" || true

# Another learning rate is refused with both values; a taken port is, too.
expect 6 '0.5' node --name x --model mlp:32 --time 600s --lr 0.5 --join "$address"
grep -q '0\.05' err
grep -q 'hint: start all nodes with the same settings' err
# So are data of its own, which are a likely mistake: what its share is made by, is said.
seq 40 | sed 's/.*/&,1\n&,0/' > own.csv
expect 6 'hint: every node reads the whole data set; --partition or --shard decides its share' \
    node --name x --model mlp:32 --time 600s --data csv:own.csv --join "$address"
grep -q 'data is digits at a and 72x1 .* at x' err
expect 4 "$address" node --listen "$address" --json x.json
# The name that it drew is there, as in every line of a node that has one.
grep -q '"event":"error",.*"node":"' x.json

# Whose connection takes the last descriptor is told of: libuv turns away who comes then. One of
# those above may have been closed meanwhile, and have left a lower number: once more, then.
until grep -q 'descriptors are in use: further peers are turned away' a.err; do
    free=0
    while [ -e "/proc/$a/fd/$free" ]; do free=$((free + 1)); done
    prlimit --pid "$a" --nofile=$((free + 1)):
    "$parley" status "$address" > status || true
done
prlimit --pid "$a" --nofile="$(ulimit -n)":

# Who is started with the same command line leaves the lines of the one that runs alone. Pipes and
# devices are for as many as like.
for verb in 'node --name a' 'run -n 1 --steps 1'; do
    # shellcheck disable=SC2086
    expect 2 'parley: --json: a.json: ' $verb --model mlp:32 --json a.json
    grep -qx 'parley: --json: a.json: is being written by another process; give each a file of its own' err
done
grep -q '"event":"started"' a.json
for _ in 1 2; do "$parley" node --model softmax --steps 1 --out x --json /dev/stdout 2> x.err | grep '"agreed"' > x.out; done
seq -f '{"old":%.0f}' 100000 > x.json # longer than what comes
"$parley" node --model softmax --steps 1 --out x --json x.json > x.out 2> x.err
if grep '"old"' x.json; then exit 1; fi
"$parley" node --model softmax --steps 1 --out x --json /dev/stdout > x.json 2> x.err
grep -q '"agreed"' x.json

start b --time 600s --join "$address"
b=$pid
until_line b "$b" '"phase":"train"'
until_step a "$a"
until_step b "$b"

# Its trainer, the first of its threads, leaves a core that they share to the others.
nice=$(nice)
nicer=$((nice + 5 < 19 ? nice + 5 : 19))
ps -L -o lwp=,ni= -p "$a" | awk -v nice="$nice" -v nicer=$nicer -v trainer="$a" '
    $2 != ($1 == trainer ? nicer : nice) { print; bad = 1 }
    END { exit bad || NR < 3 }'

# A second node of that name is refused while the first lives.
expect 4 'hint: give each node a --name of its own' node --name b --model mlp:32 --time 600s --join "$address"
# So is one of another cluster.
expect 6 'cluster is "parley" at a and "other" at x' \
    node --name x --model mlp:32 --time 600s --cluster other --join "$address"

# Both are in the list that either gives.
"$parley" status --json "$address" > status.json
grep -q '"node":"a"' status.json
grep -q '"node":"b"' status.json
status=0
"$parley" status "$address" > /dev/full 2> said || status=$?
[ $status -eq 1 ]
grep -q 'stdout: No space' said
"$parley" status "$address" | grep '^b .*alive' > /dev/null
# In a window of three lines there is room for one of the table, and for how many more there are.
python3 - "$parley" "$address" << 'END'
import fcntl, os, pty, re, signal, struct, sys, termios
process, terminal = pty.fork()
if process == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 3, 80, 0, 0))
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "status", "--watch", sys.argv[2]])
seen = b""
while b" more\r\n" not in seen:
    seen += os.read(terminal, 65536)
os.kill(process, signal.SIGINT)
os.waitpid(process, 0)
assert re.match(rb"\x1b\[H\x1b\[Jcluster [^\n]*\nand 3 more\r\n", seen), seen
END

# Of one that waits for a majority every figure is known.
start m --quorum majority --nodes 2 --steps 5
until_line m "$pid" '"phase":"held"'
alone=$(address_of m)
"$parley" status --json "$alone" | sed -E 's/"boot":"[0-9a-f]{16}"/"boot":"?"/' > status.json
grep -qFx '{"cluster":"parley","live":1,"known":1,"progress":1,"drift":null,"nodes":[{"node":"m","address":"'"$alone"'","boot":"?","state":"alive","phase":"held","step":5,"samples":160}]}' status.json
"$parley" status "$alone" | grep -q '^cluster parley: 1 live of 1 known   progress 100%   drift -$'
kill -KILL "$pid"

# Who watches a node asks again where a connection ends without an answer, and where nobody is any
# more.
: > port
python3 - "$address" > port << 'END' &
import socket, sys
host, port = sys.argv[1].rsplit(":", 1)
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
for answers in (True, False, True):
    peer = listener.accept()[0]
    asked = peer.recv(4096)
    if answers:
        with socket.create_connection((host, int(port))) as node:
            node.sendall(asked)
            peer.sendall(node.recv(65536))
        peer.recv(4096)
    peer.close()
END
between=$!
until_said port "$between" .
port=$(cat port)
: > said
"$parley" status --watch "127.0.0.1:$port" > seen 2> said &
watcher=$!
[ "$(grep -c -m 2 '; it is asked again$' < <(exec tail -n +1 -f --pid=$watcher said))" -eq 2 ]
kill "$watcher"
[ "$(grep -c '^a .*alive' seen)" -eq 2 ]

# What a node of another program calls its cluster is told as it is.
: > port
python3 - "$address" > port << 'END' &
import socket, sys
host, port = sys.argv[1].rsplit(":", 1)
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
peer = listener.accept()[0]
with socket.create_connection((host, int(port))) as node:
    node.sendall(peer.recv(4096))
    peer.sendall(node.recv(65536).replace(b"parley", 'p"är\\'.encode()))
END
between=$!
until_said port "$between" .
port=$(cat port)
"$parley" status --json "127.0.0.1:$port" > status.json
python3 -c 'import json; assert json.load(open("status.json", encoding="utf-8"))["cluster"] == "p\"är\\"'
grep -qF 'är' status.json

# Of the processes of one name one is shown, also where none lives.
b_is_dead() { "$parley" status "$address" | grep '^b .* dead' > /dev/null; }
for _ in 1 2 3; do
    kill -KILL "$b"
    wait_until "$a" b_is_dead
    [ "$("$parley" status "$address" | grep -c '^b ')" -eq 1 ]
    start b --time 600s --join "$address"
    b=$pid
    until_line b "$b" '"phase":"train"'
done

# One leaves by a signal, with its own model; the other goes on and sees it as left, not dead. What
# stood under that name is replaced, not written over: another link to it keeps what it had. The
# record of what was agreed under it goes.
echo before > before
ln before b.safetensors.b
echo stale > b.safetensors.b.agreement.json
kill -TERM "$b"
wait "$b"
[ "$(cat before)" = before ]
[ ! -e b.safetensors.b.agreement.json ]
until_line a "$a" '"peer":"b","state":"left"'
"$parley" status "$address" > seen
grep -q ': 1 live of . known, 1 left   progress' seen
grep -Eq '^b +left +- ' seen
"$parley" model verify b.safetensors.b > verified
[ ! -e b.safetensors ]
kill -INT "$a"
wait "$a"
"$parley" model eval a.safetensors.a > evaluated
# Of one that is damaged there are no figures.
cp a.safetensors.a damaged
printf '\x11\x22\x33' | dd of=damaged bs=1 seek=$(($(stat -c %s damaged) / 2)) conv=notrunc status=none
for action in eval verify 'export --out damaged.f32'; do
    # shellcheck disable=SC2086
    expect 7 'parley: damaged: the file states sha256:' model ${action%% *} damaged ${action#"${action%% *}"}
    [ ! -e damaged.f32 ]
done
"$parley" model inspect damaged > inspected
# What its digest is not of, as the last byte of the scaling, is under its seal: nothing is shown.
cp a.safetensors.a damaged
printf '\x3d' | dd of=damaged bs=1 seek=$(($(stat -c %s damaged) - 1)) conv=notrunc status=none
for action in inspect verify eval predict 'export --out damaged.f32'; do
    # shellcheck disable=SC2086
    expect 7 'parley: damaged: its texts or its scaling were changed ' model ${action%% *} damaged ${action#"${action%% *}"}
    grep -q "were changed .* take another node's file" err
    [ ! -e damaged.f32 ]
done
ln before b.f32
"$parley" model export b.safetensors.b --out b.f32 > exported
[ "$(cat before)" = before ]
[ "$(stat -c %s b.f32)" -gt 1000 ]

# A seed that is named is told of with its address.
start s --join localhost:1
until_said s.err "$pid" 'seed localhost:1: connection refused at .*\(127\.0\.0\.1\|\[::1\]\):1.*; next try in'
kill -KILL "$pid"

# The line to paste has what the next node must be given, whole and quoted, and nothing else.
printf 'a,b\n1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n7,0\n8,1\n9,0\n1,1\n' > "my table.csv"
dots=$(printf './%.0s' {1..1500})
"$parley" node --name j --steps 1 --batch 2 --model mlp:8 --data "csv:${dots}my table.csv" --time 9s \
    --checkpoint kept --resume --leave-timeout 3s --log-level info --quorum majority --nodes 1 --out j > j.out 2> j.err
line=$(sed -n 's/^parley: the next node: parley node --join [0-9.:]* //p' j.err)
[ "${line/$dots/}" = "--nodes=1 '--data=csv:my table.csv' --model=mlp:8 --batch=2 --steps=1 --time=9s --quorum=majority" ] || {
    echo "to paste: $line"
    exit 1
}

# From a node that other machines reach, the next one learns that it must be reached, too; and who
# joins by such an address and tells others one of loopback is warned.
"$parley" node --name l --listen 0.0.0.0:0 --advertise 127.0.0.1:1 --insecure --model mlp:8 --steps 1 --out l > l.out 2> l.err
grep -q '^parley: the next node: parley node --join 127.0.0.1:1 --listen=ITS-ADDRESS:0 --insecure ' l.err
expect 4 'parley: others are told' node --name l --join 127.0.0.1:1,0.0.0.0:1 --join-timeout 1ms
grep -q '^parley: others .* at 127.0.0.1:[0-9]*, which .* the seed 0.0.0.0:1 .* --listen .* --advertise' err
expect 4 'no seed was reached' node --name l --join 127.0.0.1:1 --join-timeout 1ms
if grep 'others are told' err; then exit 1; fi

# On a terminal a line stands that is drawn again and again: what is said clears it first, whichever
# thread says it.
: > t.json
on_terminal terminal "$parley" node --name t --model mlp:32 --time 600s --out t --json t.json &
script=$!
until_line t "$script" '"event":"progress"'
t=$(pids_of t.json)
start u --time 600s --join "$(address_of t)"
until_line u "$pid" '"phase":"train"'
kill -TERM "$pid"
wait "$pid"
until_line t "$script" '"peer":"u","state":"left"'
# Each is told right before it is drawn: with the second one more, one is drawn.
told=$(grep -c '"event":"progress"' t.json)
grep -c -m $((told + 2)) '"event":"progress"' < <(exec tail -n +1 -f --pid="$script" t.json) > told
kill -INT "$t"
wait "$script"
grep -qa 'parley: leaving' terminal
if grep -aP '(?<!^)(?<!\x1b\[K)parley: ' terminal; then exit 1; fi

# What is told as the time of training begins and ends with it: who waits for others before, or then
# for one that is silent, does not train.
start r --time 600s --min-peers 1
r=$pid
until_line r "$r" '"event":"started"'
start s --time 600s --min-peers 1 --join "$(address_of r)"
s=$pid
until_step r "$r"
kill -STOP "$s"
kill -USR2 "$r"
until_line r "$r" '"peer":"s","state":"dead"'
kill -CONT "$s"
wait "$r"
wait "$s"
python3 - "$(grep '"phase":"train"' r.json)" "$(grep '"phase":"stop"' r.json)" \
    "$(grep '"phase":"done"' r.json)" "$(grep '^training ' r.out)" << 'EOF'
import json, re, sys
train, stop, done = (json.loads(line)["t"] for line in sys.argv[1:4])
told = float(re.search(r"steps, ([0-9.]+) s", sys.argv[4])[1])
assert abs(told - (stop - train)) < 0.06, (train, stop, told) # 0.05: how it is rounded from 10 s on
assert stop + 0.06 < done, (stop, done)
EOF
