#!/bin/bash
# examples/growth.sh [--quick] FOLDER [PART...]: what parley costs as models, clusters and data grow.
#
#   parameters  an exchange of two nodes, beside one with nothing but sockets; its bytes
#   processes   2 to 64 nodes of `parley run`: samples a second, memory, traffic
#   simulator   10 to 10,000 nodes of `parley sim`: steps a second, memory; traffic with full views
#   data        1,000 to 300,000 images, and rows of a table: start, memory
#
# Measures these PARTs, else all, and writes each as FOLDER/PART.csv. Where gnuplot is installed
# (Debian: gnuplot-nox), it is drawn as FOLDER/PART.svg. On two idle cores all of it takes at most ten
# minutes; while others use the machine, times and rates say nothing. --quick: small sizes and short
# runs, whether it works. PARLEY names the program.
set -euo pipefail
parley=${PARLEY:-$(cd "$(dirname "$0")/.." && pwd)/build/peers/parley}
quick=
if [ "${1:-}" = --quick ]; then
    quick=--quick
    shift
fi
if [ $# -eq 0 ]; then
    echo "usage: $0 [--quick] FOLDER [parameters|processes|simulator|data]..." >&2
    exit 2
fi
folder=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$folder"
mkfifo "$scratch/pipe"

# sizes "FULL..." "QUICK..."
sizes() {
    if [ "$quick" ]; then echo "$2"; else echo "$1"; fi
}

# row FIGURE CURVE SIZE VALUE
row() {
    echo "$1,$2,$3,$4" >> "$scratch/rows"
}

# ---- What a run tells -----------------------------------------------------------------------------

# field NAME: its number in the last line that is read.
field() {
    sed -nE "s/.*\"$1\":([0-9.e+-]+).*/\1/p" | tail -n 1
}

# watch LINES run|sim OPTION...: the JSON lines of a run are in $scratch/lines. $scratch/memory is what
# its nodes have in memory, in MB, at the LINES-th report of progress or end of training: of real ones
# with their part of what processes share, of simulated ones at most so far.
watch() {
    local lines=$1 what=$2 out=() pid
    shift 2
    [ "$what" = sim ] || out=(--out "$scratch/model")
    "$parley" "$what" "$@" "${out[@]}" -q --json - > "$scratch/pipe" &
    pid=$!
    tee "$scratch/lines" < "$scratch/pipe" | {
        grep -qE -m "$lines" '"event":"progress"|"phase":"stop"' || true
        if [ "$what" = sim ]; then
            cat "/proc/$pid/status"
        else
            xargs -n 1 < "/proc/$pid/task/$pid/children" | sed 's|.*|/proc/&/smaps_rollup|' | xargs cat
        fi | awk '/^(Pss|VmHWM):/ { sum += $2 } END { print sum * 1024 / 1e6 }' > "$scratch/memory"
        cat > "$scratch/rest"
    }
    wait "$pid"
}

# told FROM: steps a second of all nodes while all of them train, from FROM seconds on; kB that a node
# sends meanwhile for membership, a second; and in the whole run for sketches. Lines of nodes come in
# any order, so those of phases are read first.
told() {
    awk -v from="$1" '
        function number(name) {
            if (!match($0, "\"" name "\":[0-9.e+-]+")) return 0
            return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0
        }
        function name() {
            match($0, /"node":"[^"]*"/)
            return substr($0, RSTART + 8, RLENGTH - 9)
        }
        BEGIN { to = 1e9 }
        { t = number("t") }
        FNR == NR && /"phase":"train"/ && t > from { from = t }
        FNR == NR && /"phase":"stop"/ && t < to { to = t }
        FNR == NR || !/"event":"progress"/ { next }
        {
            node = name()
            sketches[node] = number("bytes_sketches")
            if (t < from || t > to) next
            if (!(node in first)) {
                first[node] = t
                step[node] = number("step")
                bytes[node] = number("bytes_membership")
            }
            last[node] = t
            steps[node] = number("step") - step[node]
            members[node] = number("bytes_membership") - bytes[node]
        }
        END {
            for (node in last) {
                span = last[node] - first[node]
                if (span <= 0) continue
                rate += steps[node] / span
                membership += members[node] / span
                counted++
            }
            for (node in sketches) {
                all += sketches[node]
                nodes++
            }
            if (!counted) {
                print "growth: the nodes trained too shortly together" > "/dev/stderr"
                exit 1
            }
            print rate, membership / counted / 1e3, all / nodes / 1e3
        }' "$scratch/lines" "$scratch/lines"
}

# ---- Parts ------------------------------------------------------------------------------------------

# Bytes of both nodes for an exchange, from one report to the next: in sim, where no exchange is under
# way then. What crosses is counted there, so it takes no idle machine.
exchange_bytes() {
    watch 1 sim --nodes 2 --model "quadratic:$1" --steps 12 --compute 50ms --tolerance 1
    grep '"event":"progress"' "$scratch/lines" | awk -F '[:,]' -v floats="$1" '
        function number(name,    i) { for (i = 1; i < NF; i++) if ($i == "\"" name "\"") return $(i + 1) }
        {
            t = number("t")
            bytes[t] += number("bytes_sent")
            exchanges[t] += number("exchanges") / 2
        }
        END { print (bytes["0.5"] - bytes["0.25"]) / (exchanges["0.5"] - exchanges["0.25"]) / floats }'
}

parameters() {
    local floats
    for floats in $(sizes "10000 100000 1000000 10000000 100000000" "10000 100000"); do
        "$parley" bench wire $quick --floats "$floats" --json > "$scratch/wire"
        row time TCP "$floats" "$(grep '"wire/tcp/' "$scratch/wire" | field value)"
        row time "shared memory" "$floats" "$(grep '"wire/lane/' "$scratch/wire" | field value)"
        row time "sockets alone" "$floats" "$(grep '"wire/tcp/' "$scratch/wire" | field limit)"
        row bytes both "$floats" "$(exchange_bytes "$floats")"
    done
}

processes() {
    local nodes rate membership sketches seconds
    seconds=$(sizes 8 1)
    for nodes in $(sizes "2 4 8 16 32 64" "2 4"); do
        watch $((2 * nodes * seconds)) run --nodes "$nodes" --model mlp:256,128 --mix-every 2 \
            --time "${seconds}s"
        read -r rate membership sketches < <(told 0)
        row rate all "$nodes" "$(awk "BEGIN { print 32 * $rate }")"
        row memory each "$nodes" "$(awk "BEGIN { print $(cat "$scratch/memory") / $nodes }")"
        row traffic membership "$nodes" "$membership"
        row traffic sketches "$nodes" "$sketches"
    done
}

# scale CURVE NODES STEPS OPTION...
scale() {
    local curve=$1 nodes=$2 steps=$3
    shift 3
    watch 1 sim --nodes "$nodes" --steps "$steps" --model softmax --tolerance 1 "$@"
    row rate "$curve" "$nodes" "$(field node_steps_per_s < "$scratch/lines")"
    row memory "$curve" "$nodes" "$(awk "BEGIN { print $(cat "$scratch/memory") / $nodes }")"
}

simulator() {
    local nodes rate membership sketches
    for nodes in $(sizes "10 30 100 300" "10"); do
        scale "full views" "$nodes" "$(sizes $((30000 / nodes)) 600)"
    done
    for nodes in $(sizes "10 30 100 300 1000 3000 10000" "10 30"); do
        scale "one list for all" "$nodes" "$(sizes $((100000 / nodes)) 600)" --membership static
    done
    # The first half is left out: nodes meet in it.
    for nodes in $(sizes "8 16 32 64 128 256 512" "8 16"); do
        watch 1 sim --nodes "$nodes" --model quadratic:1000 --mix-every 8 --compute 10ms \
            --time "$(sizes 10s 4s)"
        read -r rate membership sketches < <(told "$(sizes 5 2)")
        row traffic membership "$nodes" "$membership"
        row traffic sketches "$nodes" "$sketches"
    done
}

# words NUMBER...: with 32 bits each, big-endian.
words() {
    printf '%08x' "$@" | sed 's/../\\x&/g' | xargs -0 printf '%b'
}

# images NAME COUNT: noise of 28 x 28 in MNIST's format, with labels 0 to 9 in turns.
images() {
    { words 2051 "$2" 28 28; head -c $(($2 * 784)) /dev/urandom; } > "$scratch/idx/$1-images-idx3-ubyte"
    {
        words 2049 "$2"
        seq "$2" | sed 's/.*\(.\)$/\1/' | tr -d '\n' | tr 0-9 '\000-\011'
    } > "$scratch/idx/$1-labels-idx1-ubyte"
}

# table COUNT: ten columns and a label.
table() {
    awk -v count="$1" 'BEGIN {
        for (i = 0; i < count; i++) {
            for (c = 0; c < 10; c++) printf "%.3f,", rand()
            print i % 10
        }
    }' > "$scratch/table.csv"
}

# load CURVE COUNT SPEC
load() {
    watch 8 run --nodes 4 --data "$3" --model softmax --time 2s
    row start "$1" "$2" "$(grep '"phase":"train"' "$scratch/lines" | field t)"
    row memory "$1" "$2" "$(cat "$scratch/memory")"
}

data() {
    local count
    mkdir "$scratch/idx"
    images t10k 1000
    for count in $(sizes "1000 3000 10000 30000 100000 300000" "1000 3000"); do
        images train "$count"
        load "images (IDX)" "$count" "idx:$scratch/idx"
        table "$count"
        load "table (CSV)" "$count" "csv:$scratch/table.csv"
    done
}

# ---- Pictures ---------------------------------------------------------------------------------------

# draw PART PANELS "PANEL COMMANDS": drawn on white, to be read in light and dark; three colours that
# differ in brightness too, and their marks differ.
draw() {
    (cd "$folder" && gnuplot) << END
set terminal svg size $((340 * $2)),340 font "Helvetica,12" background "#ffffff" linewidth 1.5
set output "$1.svg"
set datafile separator ","
curve(figure, name) = sprintf("< grep '^%s,%s,' $1.csv", figure, name)
set linetype 1 linecolor rgb "#0072b2" pointtype 7 pointsize 0.5
set linetype 2 linecolor rgb "#d55e00" pointtype 5 pointsize 0.5
set linetype 3 linecolor rgb "#555555" pointtype 2 pointsize 0.5 dashtype 2
set style data linespoints
set border 3 linecolor rgb "#555555"
set grid back linecolor rgb "#dddddd" linetype 1 linewidth 0.5
set tics nomirror textcolor rgb "#333333"
set key bmargin left Left reverse maxcols 1 samplen 3 textcolor rgb "#333333"
set lmargin 9
set rmargin 3
set tmargin 2.5
set bmargin 7.5
set tics scale 0.6,0
set logscale xy
set format x "10^{%L}"
set format y "%.0s %c"
set xlabel textcolor rgb "#333333"
set multiplot layout 1,$2
$3
END
}

draw_parameters() {
    draw parameters 2 '
set xlabel "parameters"
set title "an exchange with averaging, ms"
set format y "%g"
plot curve("time", "TCP") using 3:4 title "TCP", \
    curve("time", "shared memory") using 3:4 title "shared memory", \
    curve("time", "sockets alone") using 3:4 title "two sockets, no protocol"
set title "an exchange, bytes a parameter"
unset logscale y
set yrange [0:10]
plot curve("bytes", "both") using 3:4 title "both directions, protocol included"'
}

draw_processes() {
    draw processes 3 '
set xlabel "processes"
set logscale x 2
set format x "%g"
set title "samples a second, of all nodes"
plot curve("rate", "all") using 3:4 title "784-256-128-10 network"
set title "memory of a node, MB"
set yrange [1:]
plot curve("memory", "each") using 3:4 title "with its part of what is shared"
set title "what a node sends, kB"
set yrange [0.1:]
set format y "%g"
plot curve("traffic", "membership") using 3:4 title "membership, a second", \
    curve("traffic", "sketches") using 3:4 title "sketches, for the agreement"'
}

draw_simulator() {
    draw simulator 3 '
set xlabel "simulated nodes"
set title "steps a second, of all nodes"
plot curve("rate", "full views") using 3:4 title "full views", \
    curve("rate", "one list for all") using 3:4 title "one list for all"
set title "memory a node, MB"
set format y "%g"
plot curve("memory", "full views") using 3:4 title "full views", \
    curve("memory", "one list for all") using 3:4 title "one list for all"
set title "what a node sends, full views, kB"
set logscale x 2
set format x "%g"
plot curve("traffic", "membership") using 3:4 title "membership, a second", \
    curve("traffic", "sketches") using 3:4 title "sketches, for the agreement"'
}

draw_data() {
    draw data 2 '
set xlabel "samples"
set format y "%g"
set title "4 nodes: start, until all train, s"
plot curve("start", "images (IDX)") using 3:4 title "28 x 28 images", \
    curve("start", "table (CSV)") using 3:4 title "CSV of 10 columns"
set title "4 nodes: memory of all, MB"
plot curve("memory", "images (IDX)") using 3:4 title "28 x 28 images", \
    curve("memory", "table (CSV)") using 3:4 title "CSV of 10 columns"'
}

[ $# -gt 0 ] || set -- parameters processes simulator data
for part; do
    case $part in
    parameters | processes | simulator | data) ;;
    *)
        echo "$0: \"$part\" is none of parameters, processes, simulator, data" >&2
        exit 2
        ;;
    esac
done
for part; do
    echo "figure,curve,size,value" > "$scratch/rows"
    began=$SECONDS
    "$part"
    mv "$scratch/rows" "$folder/$part.csv"
    if command -v gnuplot > /dev/null; then "draw_$part"; fi
    echo "$folder/$part.csv: $((SECONDS - began)) s"
done
command -v gnuplot > /dev/null || echo "no pictures: gnuplot is not installed"
