#!/bin/bash
# text.sh PARLEY: a language model from training on two nodes to the text that it writes.
source "$(dirname "$0")/terminal.sh"
source "$(dirname "$0")/folder.sh"

for _ in $(seq 40); do echo "she sells sea shells by the sea shore"; done > text
"$parley" run -n 2 --data text:text,window=16 --model gpt:1,16,2 --optimizer adam --lr 0.01 \
    --steps 120 --progress never > out 2> err || { cat out err; exit 1; }
"$parley" model verify parley-model.safetensors > /dev/null
mv parley-model.safetensors m

# The file knows its characters and its window: of the text only the name is needed.
"$parley" model eval m --data text:text --json > eval
accuracy=$(grep -o '"accuracy":[0-9.]*' eval | cut -d: -f2)
awk -v a="$accuracy" 'BEGIN { exit !(a > 0.7) }' || { echo "accuracy $accuracy"; exit 1; }
expect 2 'the model is one of text' model eval m
expect 2 'the model is one of text: model sample goes on' model predict m

# A seed is a text; it goes on from the prompt, in the characters of the training text.
"$parley" model sample m --prompt "she " --length 50 --seed 3 > one
"$parley" model sample m --prompt "she " --length 50 --seed 3 > two
"$parley" model sample m --prompt "she " --length 50 --seed 4 > three
cmp one two
if cmp -s one three; then echo "two seeds write one text"; exit 1; fi
# At no temperature the likeliest is taken, and there is nothing to draw.
for seed in 3 4; do "$parley" model sample m --temperature 0 --prompt "she " --length 50 --seed $seed > cold.$seed; done
cmp cold.3 cold.4
grep -q '^she ' one
# Too little memory for the BLAS is said, not waited for. Sanitizers need more than that.
if ! grep -qE '__(asan|tsan)_init' "$parley"; then
    status=0
    (ulimit -v 120000 && exec timeout -s KILL 60 "$parley" model sample m --length 50) > out 2> err || status=$?
    [ $status -eq 1 ] && grep -q ' MiB of memory for OpenBLAS can.t be had: ' err || { cat out err; exit 1; }
fi
[ "$(tr -d '\nabehlorsty ' < one | wc -c)" = 0 ]
[ "$(wc -c < one)" = 55 ]
"$parley" model sample m --length 9 --json > json
grep -q '^{"prompt":"","text":".*"}$' json
expect 2 '--prompt:1:4: found a character (first byte 0x58, "X")' model sample m --prompt "sheX"

# Other formats.
"$parley" model export m --out m.npz --json > said
python3 -m zipfile -t m.npz > /dev/null
python3 -m zipfile -l m.npz > list
grep -qFx "{\"parameters\":3964,\"tensors\":$(grep -c '\.npy' list)}" said
grep -q '^block0.qkv.weight.npy' list
"$parley" model export m --out m.f32 > said
grep -q '3964 parameters' said
[ "$(wc -c < m.f32)" = $((4 * 3964)) ]
expect 2 '.npz (for numpy)' model export m
expect 2 'm.txt; its end says the format' model export m --out m.txt
expect 9 "no/m.npz.part: can't create" model export m --out no/m.npz

# A model of something else writes nothing.
"$parley" run -n 1 --epochs 0.1 --model softmax --out s --progress never > /dev/null 2>&1
expect 7 'softmax is no model of text' model sample s
expect 2 "takes text, not images" node --model gpt
expect 2 'is not a multiple of its heads' node --data text:text --model gpt:1,16,3

# A file may be anybody's: what its classes or characters are called is no command to a terminal. To
# others it goes as it is.
title=$'r\e]0;owned\aed' turned=$'bl\u202eue\u009b31m'
for i in {1..20}; do echo "$i,1,$title"; echo "$((2 * i)),0,$turned"; done > odd.csv
"$parley" node --name odd --data csv:odd.csv --model softmax --batch 4 --steps 5 --out odd > /dev/null 2>&1
"$parley" model predict odd --data csv:odd.csv > said
grep -qF "$title," said
grep -qF "$turned," said
for json in '' --json; do
    on_terminal said "$parley" model predict odd --data csv:odd.csv $json
    grep -q owned said
    if LC_ALL=C tr -d '\r\n -~' < said | grep -q .; then od -c said; exit 1; fi
done
expect 7 '"odd" on "digits": the data have 400 values a sample, the model takes 2; --data is digits unless given' model eval odd
for _ in $(seq 40); do echo "she$title sells$turned sea shells by the sea shore"; done > text
"$parley" node --name odd --data text:text,window=8 --model gpt:1,8,1 --steps 1 --out odd > /dev/null 2>&1
on_terminal said "$parley" model sample odd --length 500 --temperature 9
if LC_ALL=C tr -d '\r\n\t -~' < said | grep -q .; then od -c said; exit 1; fi
