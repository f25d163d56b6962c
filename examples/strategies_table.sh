#!/bin/bash
# examples/strategies_table.sh [FOLDER]: strategies.sh as tables, on MNIST and on text.
#
# Runs strategies.sh, 8 simulated nodes, on FOLDER/mnist and on FOLDER/tinyshakespeare.txt, and
# prints a table for each, in Markdown. Times are virtual, so no figure depends on the machine. It
# computes for about ten minutes on MNIST (two idle cores), for half an hour on the text; with
# GPT=gpt, the usual model of 0.8 million parameters, eight times that. TASKS: "mnist text", or one
# of them, or digits, a quick look; STRATEGIES, PARLEY: as there.
set -euo pipefail
folder=$(realpath "${1:-.}")
here=$(cd "$(dirname "$0")" && pwd)
export CSV
CSV=$(mktemp -d)
trap 'rm -rf "$CSV"' EXIT

# rows: of the three tables in $CSV, one a strategy.
rows() {
    awk -F, '
        function time(x) { return x == "" ? "-" : sprintf("%.3g s", x) }
        function size(x) { return x < 5e4 ? "0" : x < 1e9 ? sprintf(x < 1e7 ? "%.1f MB" : "%.0f MB", x / 1e6) : sprintf("%.1f GB", x / 1e9) }
        FNR == 1 { table++; for (i = 1; i <= NF; i++) at[$i] = i; next }
        table == 1 { order[++count] = $1; drift[$1] = $at["drift_trained"] }
        {
            cell[$1, table] = time($at["time_to_target_s"]) " | " size($at["bytes_trained"]) " | " \
                sprintf("%.4f", $at["test_accuracy"])
        }
        END {
            for (i = 1; i <= count; i++) {
                name = order[i]
                printf "| `%s` | %s | %.2g | %s | %s |\n", name, cell[name, 1], drift[name], \
                    cell[name, 2], cell[name, 3]
            }
        }' "$CSV/undisturbed.csv" "$CSV/slow.csv" "$CSV/killed.csv"
}

table() {
    local title=$1
    shift
    "$here/strategies.sh" "$@" > "$CSV/tables"
    printf '%s\n\n' "$title: time to the target (virtual; -: not reached), bytes of training, accuracy"
    echo '| | undisturbed | | | drift | n3 four times slower | | | n3 killed at 20 % | | |'
    echo '|---|---|---|---|---|---|---|---|---|---|---|'
    rows
    echo
}

adam=(--optimizer adam --lr 0.002 --batch 8 --warmup 0.1)
for task in ${TASKS:-mnist text}; do
    case $task in
    mnist)
        table "MNIST, \`mlp:256,128\`, target 0.97, at most 6 epochs" --data "idx:$folder/mnist" \
            --target-accuracy 0.97
        ;;
    text)
        model=${GPT:-gpt:2,64,4}
        table "tinyshakespeare, \`$model\`, adam, target 0.4 of the next characters, at most 2 epochs" \
            --data "text:$folder/tinyshakespeare.txt" --model "$model" "${adam[@]}" --epochs 2 \
            --target-accuracy 0.4
        ;;
    digits)
        table "built-in digits, softmax, target 0.8, at most 1 epoch" --model softmax --epochs 1 \
            --target-accuracy 0.8
        ;;
    *)
        echo "TASKS: \"$task\" is none of mnist, text, digits" >&2
        exit 2
        ;;
    esac
done
