#!/bin/bash
# errors.sh PARLEY: each bad input ends with its status and a line that names it.
readme=$(dirname "$(realpath "$0")")/../../README.md
source "$(dirname "$0")/failures.sh"

# expect STATUS TEXT ARGUMENT...
expect() {
    local status=$1 text=$2
    shift 2
    "$parley" "$@" > out 2>&1
    local got=$?
    if [ $got -ne "$status" ] || ! grep -qF -- "$text" out; then
        fail "parley $*: status $got, not $status, or no \"$text\" in:"
        cat out
    fi
}

# What README.md shows of nodes on several machines is accepted, the data apart.
sed -n 's/^    parley node \(.*\) --data .*/\1/p' "$readme" > nodes
[ -s nodes ] || fail 'no node in README.md'
while read -ra arguments; do
    expect 0 'all of it would be accepted' check "${arguments[@]}"
done < nodes
expect 2 'say with --advertise' node --listen 0.0.0.0:0 --insecure

# All that is as long as the model.
expect 0 '; 8 vectors, ' check --model softmax
expect 0 '; 13 vectors, ' check --model softmax --optimizer adam --robust
expect 0 '; 14 vectors, ' check --model softmax --momentum-mode averaged

mkdir short full
images=train-images-idx3-ubyte labels=train-labels-idx1-ubyte
# Two images of one byte, and labels 0 and 200; the test set has a label that training has not.
printf '\0\0\10\3\0\0\0\2\0\0\0\1\0\0\0\1\0\1' > full/$images
printf '\0\0\10\1\0\0\0\2\0\1' > full/$labels
cp full/$images full/t10k-images-idx3-ubyte
printf '\0\0\10\1\0\0\0\2\0\310' > full/t10k-labels-idx1-ubyte
head -c 17 full/$images > short/$images
cp full/$labels short/

expect 2 'did you mean "node"' nod
expect 2 'did you mean --epochs' run --epoch 3
expect 2 '--lr: "abc"' node --lr abc
expect 2 '--out: /dev/zero is no regular file' run --out /dev/zero
echo text > kept.tex
expect 2 "--out: kept.tex is there, and is no model to be replaced" run --out kept.tex
expect 2 '"quadratic:8" is possible in parley sim only' run --model quadratic:8
expect 2 '"quadratic:8" is possible in parley sim only' node --model quadratic:8
expect 2 'quadratic:D, quadratic:D,common or quadratic:D,apart' sim --model quadratic:8x
expect 2 '"quadratic:8" has no accuracy' sim --model quadratic:8 --target-accuracy 0.9
expect 2 '--threads: "0"' sim --threads 0
expect 2 '--nodes: "16385" is out of range (1 to 16384)' sim -n 16385
expect 2 '--fault: with those that join there are 16385 nodes; at most 16384' sim -n 16384 --membership static --fault join:1@5s
expect 2 'did you mean "adam"' check --optimizer adamm
for how in run sim node; do
    expect 2 "model 'mlp:0' has a missing or bad number" $how --model mlp:0
    expect 2 '--partition: "dirichlet:0" has no number above 0' $how --partition dirichlet:0
    expect 7 '--data: nodir/train-images-idx3-ubyte: No such file or directory, nor with .gz' $how --data idx:nodir
done
expect 2 "parley: model 'lenet' takes images of" run --model lenet
expect 2 'parley: --partition: "dirichlet:0"' run --partition dirichlet:0
expect 2 '--config: nofile: No such file' run -c nofile
head -c 1048577 /dev/zero | tr '\0' '#' > large
expect 2 '--config: large: File too large' check -c large
expect 2 '--join: nofile: No such file' node --join @nofile
long=$(printf 'n%.0s' {1..70}):7000 # a seed that none could dial is not left out
expect 2 "parley: --join: \"$long\" is longer than 71 characters" node --join "$long"
expect 2 'is not found now, and too long (71 characters) to be tried later' node --join "dns:${long%:*}.invalid:7000"
for i in {1..300}; do echo "127.0.0.1:$i"; done > many
expect 4 '44 seeds are left out: at most 256 are dialled' node --join @many --join-timeout 1ms
expect 7 '--compute: nofile: No such file' sim --compute trace:nofile
expect 2 'gd takes its whole share' run --optimizer gd --lr-scale cluster
expect 2 '"topk:0.01" sends differences' sim --codec topk:0.01
expect 2 'subset:0.01' run --strategy gossip --codec topk:0.01
expect 2 '--strategy choco' run --codec topk:0.01
expect 2 'allreduce sends fp32' run --strategy allreduce --codec topk:0.01
expect 2 'use topk:P' sim --strategy choco --codec subset:0.1
expect 2 'at most 0.5, like topk:0.01' sim --strategy choco --codec topk:0.6
expect 2 'take ring, torus, exponential or regular:K' node --strategy choco --topology base:2
expect 2 'of 20 nodes has 19: take ring' sim -n 20 --strategy choco
expect 2 'take exponential, regular:K or base:K' sim -n 80 --strategy gossip-sync
expect 2 'averages the gradients of every step' run --strategy allreduce --mix-every 4
expect 2 'follows averaging' run --strategy noloco --momentum-mode quasi-global
expect 2 'follows averaging' run --strategy push-sum --momentum-mode quasi-global
expect 2 'follows averaging' run --strategy push-sum --momentum-mode reset
expect 2 'follows averaging' run --strategy local-sgd --momentum-mode reset
expect 2 'follows averaging' sim --strategy allreduce --momentum-mode reset
expect 2 '"subset:7" has no part' node --codec subset:7
expect 2 'did you mean "bf16"' check --codec bf15
expect 2 "has a share that is none" sim --mix-every 1,8@150%
expect 2 "does not say how it begins" run --mix-every 8@50%
expect 2 'quasi-global" needs --optimizer' sim --optimizer adam --momentum-mode quasi-global
expect 2 'nofile: No such file' node --peers nofile
expect 2 'join takes seeds' node --peers 127.0.0.1:7000
expect 2 'nofile: No such file' check -c nofile
expect 2 '--insecure' node --listen 0.0.0.0:0
expect 2 '1 to 31 letters' node --name 0123456789012345678901234567890123456789
expect 2 'number without the share of the budget from which it holds' run --mix-every 1,8
expect 2 '"0.1,0.2" is not a number (parley sim would try each' run --lr 0.1,0.2
expect 2 'is not a whole number (parley sim would try each' node --seed 1..3
expect 2 '"digits:3" is more than "digits"' run --data digits:3
expect 2 '"gpt:" lacks BLOCKS,WIDTH,HEADS: write gpt:BLOCKS,WIDTH,HEADS' run --model gpt:
expect 2 '--time: "0s" is out of range' run --time 0s
expect 4 'address of this machine' node --listen 192.0.2.1:0 --insecure
expect 2 'at most 71 bytes' node --insecure --listen "$(printf '%070d' 0):7000"
expect 7 'nodir/train-images-idx3-ubyte: No such file' node --data idx:nodir
expect 7 short/$images node --data idx:short
expect 7 t10k-labels-idx1-ubyte node --data idx:full
expect 7 t10k-labels-idx1-ubyte run -n 2 --data idx:full
expect 7 t10k-labels-idx1-ubyte check --data idx:full
printf 'a,b,kind\n1,2,x\n3,4,y\n' > t.csv
printf '1,2\n3,4\n' > n.csv
printf '1,2,x\n3,oops,y\n' > bad.csv
expect 7 'bad.csv:2: column 2: found "oops", expected a number' node --data csv:bad.csv
expect 2 '"lable" is unknown (valid behind the name: label=NAME, header=yes, header=no, numbers)' check --data csv:t.csv,lable=kid
expect 2 '"number" is unknown (valid behind the name: numbers)' run -n 2 --data libsvm:t.csv,number
expect 7 'no.csv,lable=kid: No such file' check --data csv:no.csv,lable=kid
seq 40 | sed 's/.*/&,1\n&,0/' > t.csv,lable=kid
expect 0 '2 classes' check --data csv:t.csv,lable=kid
rm t.csv,lable=kid
expect 7 'no column "kid" for the label; there are 3' check --data csv:t.csv,label=kid
expect 7 'bad.csv:2: column 2 ("b"): found "oops"' run -n 2 --data csv:t.csv --test csv:bad.csv
expect 7 'x.npy: No such file' node --data npy:full
expect 7 't.csv:1:1: found "a,b,kind", expected a number as label' node --data libsvm:t.csv
expect 7 '--test: nofile: No such file' check --data csv:t.csv --test csv:nofile
expect 2 'a test set of another kind' node --data csv:t.csv --test digits
expect 2 'takes tables and images, not text' node --data text:t.csv,window=3
expect 2 'images of 28 x 28 or 32 x 32 values' node --model lenet
expect 2 'takes numbers as labels, not classes' run -n 2 --model linear
expect 2 'takes images, not tables' sim --model resnet:1 --data csv:t.csv
expect 2 'numbers" has no classes; --model quadratic:8 only counts' sim --model quadratic:8 --data csv:n.csv,numbers
expect 2 'target-accuracy needs classes' sim --model linear --data csv:n.csv,numbers --target-accuracy 0.9
for how in run node sim; do expect 2 '--partition: "dirichlet:0.1" goes by classes, and labels are numbers' $how --model linear --data csv:n.csv,numbers --partition dirichlet:0.1; done
expect 2 '3 characters each, 14 different ones' check --data text:t.csv,window=3
expect 7 'nomodel: No such file' model inspect nomodel
expect 7 "full/$images" model verify full/$images
expect 4 'no seed was reached' node --join 127.0.0.1:1 --join-timeout 300ms
expect 4 'refused' status 127.0.0.1:1
expect 4 'hint: check the addresses of --join' node --join 127.0.0.1:1 --join-timeout 1ms
expect 2 '"nowhere"' status nowhere
# Somebody else's port: one that answers, one that hangs up, one that answers as a node would, but with
# a progress that is no number and a member that stands aside, and one that goes on answering, but no
# byte in time for the next: an answer has some seconds, not each of its bytes.
: > port
python3 - > port << 'END' &
import select, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
report = (b"\x83\xa8progress\xcb\x7f\xf8\0\0\0\0\0\0\xa5total\x01"
          b"\xa1r\x91\x85\xa1n\xa1a\xa1a\xa3b:1\xa1b\x01\xa1p\x01\xa2as\x01")
frame = b"Py\x01\x18%c\0\0\0" % len(report) + report
for answer in (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", b"", frame):
    peer = listener.accept()[0]
    peer.recv(4096)
    peer.sendall(answer)
    peer.close()
peer = listener.accept()[0]
peer.recv(4096)
while not select.select([peer], [], [], 1)[0]: # until it hangs up
    peer.send(b"P")
END
server=$!
until_said port $server .
port=$(cat port)
expect 4 'answers in another protocol; is this a parley node?' status 127.0.0.1:$port
expect 4 'closed the connection: no parley node, or one that ends' status 127.0.0.1:$port
expect 0 'progress 0%   drift 0' status 127.0.0.1:$port
grep -q '^a  *alive  *aside ' out || { fail "status of who stands aside:"; cat out; }
expect 4 'no answer; is this a parley node?' status 127.0.0.1:$port
kill $server 2> /dev/null
wait $server 2> /dev/null
# Stopped and woken while it connects, as by Ctrl-Z and fg: it goes on.
python3 - "$parley" > out 2>&1 << 'END'
import os, signal, socket, subprocess, sys
listener = socket.create_server(("127.0.0.1", 0), backlog=0)
listener.settimeout(60)
port = listener.getsockname()[1]
full = socket.create_connection(("127.0.0.1", port)) # who comes next waits in connect()
waits, status = ":%04X 02 " % port, None # in SYN_SENT
while not any(waits in line for line in open("/proc/net/tcp")):
    if not status or status.poll() is not None: # it waits for some seconds only
        status = subprocess.Popen([sys.argv[1], "status", "127.0.0.1:%d" % port])
status.send_signal(signal.SIGSTOP)
os.waitpid(status.pid, os.WUNTRACED)
status.send_signal(signal.SIGCONT)
listener.accept()
peer = listener.accept()[0]
peer.recv(4096)
peer.close()
sys.exit(status.wait())
END
[ $? -eq 4 ] && grep -q 'closed the connection: no parley node, or one that ends' out ||
    { fail "status, stopped and woken in connect()"; cat out; }
expect 2 'no file can be made in nodir/: No such file' node --steps 3 --model softmax --out nodir/model
expect 2 'no file can be made in nodir/: No such file' run --steps 3 --model softmax --out nodir/model
expect 2 'no file can be made in nodir/: No such file' sim --steps 3 --model softmax --out nodir/model
for how in node run sim; do expect 2 '--out and --json: both write to "./x"' $how --steps 3 --out x --json ./x; done
for how in node run sim check; do expect 2 '--out: "-": a model is not written to stdout' $how --steps 3 --out -; done
expect 0 '"summary"' sim --steps 3 --model softmax --json - --out ./-
expect 2 '--out and --json: both write' run --steps 3 --json parley-model.safetensors
expect 2 '--out and --json: both write' run --steps 3 --out x --json x.agreement.json
# What is read is not written over, nor is a file of another kind emptied for JSON lines.
expect 2 '--json: "t.csv" is read, by --data; name another file' run --data csv:./t.csv,label=y --json t.csv
expect 2 '--csv: "t.csv" is read, by --test' sim -n 2,3 --data csv:u.csv --test csv:t.csv --csv t.csv
expect 2 '--csv: "g" is read, by --topology' sim -n 2,3 --topology file:g --csv g
expect 0 'agreed' sim --steps 3 --model softmax --data digits --json digits
expect 2 '--json: "./key" is read, by --cluster-key' node --cluster-key key --json ./key
echo 'no JSON' > kept.txt
for how in node run; do expect 2 '--json: kept.txt: is there, and has no JSON lines' $how --steps 3 --json kept.txt; done
[ "$(cat kept.txt)" = 'no JSON' ] || fail '--json has emptied another file'
expect 2 '--json and --csv: both write to "-"' sim --steps 3 --nodes 2,3 --json - --csv -
expect 2 '--csv and --curves: both write to "-"' sim --steps 3 --csv - --curves -
expect 2 '--csv and --report: both write' sim --steps 3 --csv x.html --report x.html
expect 0 'agreed' sim --steps 3 --model softmax --json /dev/null --csv /dev/null
expect 2 '--compare asks for several' sim --steps 3 --compare gossip --out model
expect 2 '--seed asks for several' sim --steps 3 --seed 1..2 --out model
expect 2 '"quadratic:8" (--model) is none' sim --model quadratic:8 --out model
for how in node run sim; do expect 2 '--json: nodir/x: No such file' $how --steps 3 --model softmax --json nodir/x; done
# Who can't write what was asked for says so once, and ends with 1 if the run itself went well.
full='--json: /dev/full: No space left on device' lost=': /dev/full: not all of it could be written'
expect 1 "$full" node --steps 3 --model softmax --json /dev/full
expect 1 "$full" run --steps 3 --model softmax --json /dev/full
expect 4 "$full" node --join 127.0.0.1:1 --join-timeout 1ms --json /dev/full
expect 1 "--json$lost" sim --nodes 2 --steps 3 --model softmax --json /dev/full
expect 1 "--json$lost" sim --nodes 2,3 --steps 3 --model softmax --json /dev/full
expect 1 "--csv$lost" sim --nodes 2,3 --steps 3 --model softmax --csv /dev/full
expect 1 "--curves$lost" sim --nodes 2,3 --steps 3 --model softmax --curves /dev/full
expect 1 "--json$lost" sim --swarm --seeds 1..3 --json /dev/full
# full ARGUMENT...: where no file can grow.
full() {
    (trap '' XFSZ && ulimit -f 0 && exec "$parley" sim "$@") 2>&1 | cat > out
    [ "${PIPESTATUS[0]}" -eq 1 ]
}
full --swarm --seeds 1..9 --threads 2 --tally seeds && [ "$(grep -c '^parley: --tally: "seeds": File too' out)" -eq 1 ] ||
    { fail 'a tally that has no room:'; cat out; }
full -q --nodes 2,3 --steps 3 --model softmax --csv table && grep -q -- '--csv: table: not all of it' out && [ ! -e table ] ||
    { fail 'a table that has no room:'; ls table; cat out; }
for what in check --version 'help run' 'topology ring' 'run -q --steps 3' 'run -q --steps 3 --json -' \
    'node -q --steps 3' 'sim -q --steps 3' 'sim -q --steps 3 --nodes 2,3' 'sim --swarm --seeds 1..2' \
    'completion bash' 'model inspect parley-model.safetensors' 'model predict parley-model.safetensors'; do
    # shellcheck disable=SC2086
    "$parley" $what > /dev/full 2> out
    status=$?
    [ $status -eq 1 ] && grep -q '^parley: stdout: ' out && [ "$(wc -l < out)" -eq 1 ] ||
        { fail "$what to /dev/full: $status"; cat out; }
    case $what in
        run* | node* | sim*) ;;
        *) grep -q ': No space left on device$' out || { fail "$what to /dev/full, but why:"; cat out; } ;;
    esac
done
# A reader that has gone is no failure to speak of, and a closed standard file none at all.
mkfifo pipe
exec 3<> pipe 4> pipe 3<&-
"$parley" help run >&4 2> out
[ ! -s out ] || { cat out; failures=$((failures + 1)); }
exec 4>&-
for file in 0 1 2; do
    eval "\"\$parley\" run -n 2 --steps 3 --model softmax --out closed $file>&-" > out 2>&1
    status=$?
    [ $status -eq 0 ] || { fail "run with $file closed: $status"; cat out; }
done
for most in 12 16; do # too few descriptors to listen, and to wait for signals
    (ulimit -n $most && exec "$parley" node --steps 3 --model softmax) > out 2>&1
    grep -q 'too many open files' out && grep -q 'hint: raise the limit with ulimit -n' out ||
        { fail "with $most descriptors:"; cat out; }
done
for most in 5 20; do # too few to wait for nodes, and to start one
    (ulimit -n $most && exec "$parley" run --steps 3 --model softmax) > out 2>&1
    status=$?
    [ $status -eq 1 ] && grep -q 'too many open files' out && grep -q 'ulimit -n' out ||
        { fail "run with $most descriptors: $status"; cat out; }
done

# With few more they start, and links that take the last of them keep no model from its file.
for most in {20..32}; do
    (ulimit -n "$most" && exec "$parley" run -q --nodes 2 --epochs 0.2 --model softmax --out few) > out 2>&1
    status=$?
    if [ $status -eq 0 ]; then [ -s few ]; else [ $status -eq 1 ] && grep -q 'too many open files' out; fi ||
        { fail "run with $most descriptors: $status"; cat out; }
    rm -f few*
done
expect 4 'hint: --listen takes an address of this machine; 0.0.0.0 is' node --insecure --listen 192.0.2.1:0
expect 4 'hint: --listen takes an address of this machine; [::] is' node --insecure --listen '[2001:db8::1]:0'
# As root may take any port, root's rights are dropped; where even others may, there is no hint.
plain=()
[ "$(id -u)" -ne 0 ] || plain=(setpriv --bounding-set=-all)
"${plain[@]}" "$parley" node --listen 127.0.0.1:1 --steps 3 --model softmax --out m > out 2>&1
[ $? -eq 4 ] && grep -q 'permission denied' out && grep -q 'hint: ports below 1024 need root' out ||
    [ "$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start)" -le 1 ] ||
    { fail 'a port that only root may take:'; cat out; }
# No thread more: root may have any number. Nor as nobody, of whom others may have processes, in other
# containers even: they count.
other=()
[ "$(id -u)" -ne 0 ] || other=(setpriv --reuid=$((60000 + $$ % 5000)) --clear-groups)
if "${other[@]}" test -x "$parley"; then
    for verb in node run; do
        (ulimit -u 1 && exec "${other[@]}" "$parley" $verb --steps 3 --model softmax --out /tmp/m) > out 2>&1
        status=$?
        [ $status -eq 1 ] && grep -q 'threads (ulimit -u)' out ||
            { fail "$verb without threads: $status"; cat out; }
    done
    # A simulation does without: what it computes is the same. (The sanitizer looks for leaks in a
    # process of its own, and another user may not write its reports.)
    for what in '' '--mix-every 1,2'; do
        # shellcheck disable=SC2086
        (export ASAN_OPTIONS=detect_leaks=0 && ulimit -u 1 &&
            exec "${other[@]}" "$parley" sim -n 2 --steps 3 --model softmax --threads 2 $what) > out 2>&1
        status=$?
        [ $status -eq 0 ] && grep -Eq 'agreed  *2 of 2|2 of 2$' out ||
            { fail "sim $what without threads: $status"; cat out; }
    done
    # With one thread more each time: some are enough to start, and too few for names to be looked up.
    for most in {2..12}; do
        (ulimit -u "$most" && exec "${other[@]}" "$parley" node --join localhost:1 --join-timeout 100ms \
            --steps 3 --model softmax --out /tmp/m) > out 2>&1
        status=$?
        [ $status -eq 1 ] || [ $status -eq 4 ] ||
            { fail "a name and $most threads: $status"; cat out; }
    done
fi
# Too little memory for the BLAS, which would ask for it for ever. Sanitizers need more than that, and
# what they say of it would count as a report of theirs.
if ! grep -qE '__(asan|tsan)_init' "$parley"; then
    for what in 'node --steps 3' 'run -n 1 --steps 3' 'sim -n 1 --steps 3' 'bench step --quick' 'bench sim --quick' \
        'topology ring -n 3'; do
        # shellcheck disable=SC2086
        (ulimit -v 120000 && exec timeout -s KILL 60 "$parley" $what) > out 2>&1
        status=$?
        [ $status -eq 1 ] && grep -q ' MiB of memory for OpenBLAS can.t be had.*: .*(ulimit -v)$' out ||
            { fail "$what with little memory: $status"; cat out; }
    done
    # Enough for one thread that computes, but not for two.
    for threads in 1 2; do
        (ulimit -v 240000 && exec timeout -s KILL 60 "$parley" sim -n 2 --steps 3 --threads $threads) > out 2>&1
        status=$?
        [ $status -eq $((threads - 1)) ] || { fail "$threads threads: $status"; cat out; }
    done
    grep -q ' for each thread: ' out || { fail 'two threads with little memory:'; cat out; }
fi
# More than any machine has, of which it is not left to the kernel to find out.
expect 1 '10000 nodes take 40.0 TB of memory at least, 4.0 GB each for the model, and' \
    sim -n 10000 --model quadratic:1000000000
expect 1 'each for the model and what the optimizer keeps, and' sim -n 10000 --model mlp:60000,30000 --batch 1
long=$(printf 'm%.0s' {1..250}) # with what is added while it is written it is too long a name
expect 2 's name is longer than' node --steps 3 --model softmax --out "$long"
expect 8 'smaller learning rate' node --lr 1000 --weight-decay 1 --steps 300 --model mlp:64 --out m
[ "$(grep -c 'smaller learning rate' out)" -eq 1 ] || { cat out; failures=$((failures + 1)); }
expect 0 'all of it would be accepted' check
expect 0 'seeds      0: starts a cluster' check
expect 0 'seeds      1: 127.0.0.1:7000' check --join 127.0.0.1:7000
# Kernels that the user has chosen are used, whatever would be faster.
for core in Haswell Prescott; do
    [ "$(uname -m)" != x86_64 ] || OPENBLAS_CORETYPE=$core expect 0 "(OpenBLAS kernels: $core)" --version
done
expect 0 'spectral gap' topology ring -n 8
expect 0 'n1            n0 n10' topology ring -n 12 # the line of nodes goes by their names
expect 0 '"n10" -- "n11";' topology ring -n 12 --dot
# A simulation of the exchanges from the worst start takes 25.0 and 51 a node.
expect 0 'after 13 to 26 exchanges a node' topology complete -n 16
expect 0 'after 47 to 93 exchanges a node' topology ring -n 8
# A third to each neighbour: 1 less the largest of (1 + 2 cos(2 pi k / 8)) / 3.
expect 0 'synchronous   0.195262 of Metropolis weights; a thousandth of the distance after 32 rounds' topology ring -n 8
expect 0 'edges         8' topology ring -n 8
expect 2 'is not a topology' topology stir
expect 0 'degree        4 at every node' topology regular:4 -n 9
expect 2 'take 6 or 8 nodes' topology torus -n 7
expect 2 'take 6 or 8 nodes' sim --topology torus -n 7
expect 7 'no-such-graph' topology file:no-such-graph
printf 'n0 n1\nn1 n2\n' > graph
expect 0 'of 3 nodes' topology file:graph
expect 7 'has no link of "n3"; the nodes are n0 to n4' topology file:graph -n 5
expect 7 'has no link of "n3"; the nodes are n0 to n4' run --topology file:graph -n 5
# Of who is not there it says so, and that nobody is linked through it.
printf 'n0 n1\nn1 n2\nn0 n9\nn9 n2\n' > graph
printf 'n0 n9\nn9 n1\nn1 n2\n' > apart
printf 'n0 n3\nn3 n1\nn1 n2\nn2 n9\n' > joins
expect 0 'of 4 nodes' topology file:graph
expect 0 'of 3 nodes' topology file:graph -n 3
expect 0 'edges         2' topology file:graph -n 3
for verb in run sim; do
    expect 0 'graph: has links of "n9", which is none of n0 to n2: these' \
        $verb -n 3 --topology file:graph --model softmax --steps 3
    expect 7 '"n9", which is none of n0 to n2: no links among these lead from "n0" to "n1"' \
        $verb -n 3 --topology file:apart
done
expect 0 '"n9", which is none of n0 to n3: these links are left out' \
    sim -n 3 --fault join:1@50% --topology file:joins --model softmax --steps 3
# A link stands twice in it. Of 17 nodes n0 has 16 neighbours, of 18 one more than have room.
{ seq -f 'n0 n%g' 17; echo n1 n0; } > graph
expect 0 'agreed    17 of 17' sim -n 17 --topology file:graph --strategy choco --model quadratic:8 --steps 3
expect 7 '"n0" has 17 neighbours, and --strategy choco averages with at most 16 a round' sim -n 18 --topology file:graph --strategy choco
expect 7 '"n0" has 17 neighbours, and --strategy choco averages with at most 16 a round' run -n 18 --topology file:graph --strategy choco
expect 2 '--floats is of bench wire' bench step --floats 10
expect 2 '--out is of model export' model predict nomodel --out classes.csv
expect 2 '"extra": --version takes nothing behind it' --version extra
expect 7 '--topology: no-such-graph: No such file' run --topology file:no-such-graph
expect 2 '"nodir/tally": No such file' sim --swarm --seeds 1..2 --tally nodir/tally
expect 0 '2 of 2 seeds well' sim --swarm --seeds 1..2 --tally tally
expect 0 '3 of 3 seeds well (2 of them earlier)' sim --swarm --seeds 1..3 --tally tally
expect 0 '"ok":true' sim --swarm --seeds 1..3 --tally tally --json -

# A file that may not grow (ulimit -f) is one that can't be written, not the end.
(ulimit -f 40; expect 9 'File too large' run -n 2 --model mlp:32 --steps 5 --out grown
    grep -q 'hint: make room, or choose another --out' out || fail "no hint: $(cat out)"; exit $failures) || failures=$((failures + 1))

# Nodes are started as this very program, which nobody can tell where /proc is not mounted.
for apart in 'unshare -m' 'unshare -r -m'; do
    $apart mount -t tmpfs none /proc 2> /dev/null || continue
    $apart sh -c 'mount -t tmpfs none /proc; exec "$0" run -n 2' "$parley" > out 2>&1
    [ $? -eq 1 ] && grep -qF '/proc/self/exe: no such file' out ||
        { fail 'run without /proc:'; cat out; }
    break
done

exit $((failures > 0))
