#!/bin/bash
# layering.sh ROOT CORE SRC SIM PEERS: the arrow of the architecture, held by symbols and includes.
#
# What an archive needs from outside must stand in the lists below; anything else fails by name, with
# the object that wants it. A socket, clock, thread, stream, file, rand() or getenv() thus can't
# creep into src/.
set -uo pipefail
export LC_ALL=C
root=$1 core=$2 src=$3 sim=$4 peers=$5

# Extended regular expressions over whole symbols.
libc='mem(cpy|move|set|cmp|chr)|str(n?len|n?cmp|n?casecmp|r?chr|n?cpy|cat|str|c?spn|pbrk|n?dup|to(l|ul|ll|ull|d|f|imax|umax)|error_r)'
libc+='|v?snprintf|malloc|calloc|realloc|aligned_alloc|free|qsort|bsearch|abs|isalnum|isalpha|isdigit|isspace|isprint|toupper|tolower'
libc+='|__assert_fail|__errno_location|__ctype_(b|tolower|toupper)_loc'
math='(sqrt|cbrt|exp2?|expm1|log(2|10|1p)?|pow|sin|cos|sincos|tan|tanh|atan2?|floor|ceil|trunc|l?l?round|l?l?rint|nearbyint|fabs|fmod|fma|fmin|fmax|hypot|ldexp|frexp|scalbn|copysign|erfc?|lgamma|nextafter|isnan|isinf|finite)f?'
# What compilers, hardening and the sanitizers add by themselves.
compiler='_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__(mem|str|v?snprintf)[a-z]*_chk|__isoc99_strto[a-z]*|__tls_get_addr|__(asan|ubsan|tsan|sanitizer|gcov|odr_asan)_.*|__(popcount|ctz|clz|mul|udiv|umod|fix|float|trunc|extend)[a-z0-9]+'
# Vector forms of math functions, as -O3 may call them.
compiler+='|_ZGV[a-z]N[0-9]+v+_[a-z0-9]+'

core_may="$libc|$math|$compiler|msgpack_.*|XXH.*"
# inet_pton only parses, getopt_long walks what it is given, __cpu_model picks a kernel by CPU.
# Digests by EVP, none of OpenSSL's random numbers or BIOs.
src_may="$core_may|cblas_.*|json_.*|yaml_.*|EVP_.*|inflate.*|crc32|inet_pton|getopt_long|opt(arg|err|ind|opt)|__cpu_(model|indicator_init)"
# Parts of those libraries that read or write files or streams.
never='msgpack_(fbuffer.*|object_print)|json_(load|dump)(_file|f|fd)|yaml_.*_file|EVP_.*_fp|gz.*'

number=0
# verdict TEXT FINDINGS: one TAP line; no findings is a pass.
verdict() {
    number=$((number + 1))
    if [ -z "$2" ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        printf '%s\n' "$2" | sed 's/^/# /'
    fi
}

defined() {
    nm -P --defined-only --extern-only "$@" | awk 'NF > 2 { print $1 }' | sort -u
}

# needs ARCHIVE: "symbol object" for each thing it wants from outside itself.
needs() {
    nm -A -P --undefined-only "$1" | sed 's/^.*\[\(.*\)\]: \([^ ]*\) .*/\2 \1/' |
        awk 'NR == FNR { own[$1]; next } !($1 in own)' <(defined "$1") - | sort -u
}

# outside ARCHIVE MAY [OTHER]: its needs that are neither in MAY nor defined in OTHER, or are in never.
outside() {
    needs "$1" | awk -v may="^($2)$" -v never="^($never)$" '
        NR == FNR { other[$1]; next }
        ($1 in other) { next }
        $1 !~ may || $1 ~ never { print $1 " is used by " $2 }' <(if [ $# -gt 2 ]; then defined "$3"; fi; echo) -
}

# shared A B: what A needs and B defines.
shared() {
    needs "$1" | awk 'NR == FNR { theirs[$1]; next } $1 in theirs { print $1 " is used by " $2 }' <(defined "$2") -
}

# includes PATTERN DIR...: include lines that match PATTERN.
includes() {
    local pattern=$1
    shift
    (cd "$root" && grep -rnE --include='*.[ch]' "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($pattern)" "$@")
}

echo "1..8"
# An archive without symbols would pass everything.
[ -n "$(defined "$core")" ] || { echo "Bail out! no symbols in $core"; exit 1; }
verdict "the core names nothing of the world" "$(outside "$core" "$core_may")"
verdict "src/ names no socket, clock, thread, stream or file" "$(outside "$src" "$src_may" "$core")"
verdict "src/ includes nothing of the drivers or of the system's world" "$(
    includes '(\.\./)*(peers|sim)/|parley/sim\.h|uv\.h|pthread|threads\.h|time\.h|sys/|unistd|fcntl|netinet|netdb|poll|signal|dirent|openssl/(rand|bio|ssl)' src)"
verdict "peers/ includes nothing of sim/" "$(includes '(\.\./)*(sim|world|swarm|experiment|run)/' peers)"
verdict "sim/world/ includes nothing of who runs simulations, or of settings" "$(
    includes '(\.\./)*(sim/)?(swarm|run|experiment|settings)/' sim/world)"
verdict "sim/ includes nothing of peers/ or libuv" "$(includes '(\.\./)*peers/|uv\.h|sys/socket' sim)"
verdict "sim/ uses no symbol of peers/ or libuv" "$(
    needs "$sim" | awk '$1 ~ /^uv_/ { print $1 " is used by " $2 }'
    shared "$sim" "$peers")"
verdict "peers/ uses no symbol of sim/" "$(shared "$peers" "$sim")"
