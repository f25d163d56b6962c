#!/bin/sh
# The installed library is enough to build and run a program of one's own; shells find their completion,
# and man(1) its page.
#   installed.sh BUILD SOURCE
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
meson install -C "$1" --no-rebuild --quiet --destdir "$folder"
export PKG_CONFIG_SYSROOT_DIR="$folder"
PKG_CONFIG_PATH=$(dirname "$(find "$folder" -name parley.pc)")
export PKG_CONFIG_PATH
libraries=$(dirname "$(find "$folder" -name libparley.so)")
# What the installed program prints, under the names that shells look for.
program=$(find "$folder" -path '*/bin/parley')
share=$(dirname "$(dirname "$program")")/share
"$program" completion bash | cmp - "$share/bash-completion/completions/parley"
"$program" completion zsh | cmp - "$share/zsh/site-functions/_parley"
"$program" completion fish | cmp - "$share/fish/vendor_completions.d/parley.fish"
page=$share/man/man1/parley.1
"$program" help man | cmp - "$page"
if command -v groff > /dev/null; then [ -z "$(groff -man -ww -z "$page" 2>&1)" ]; fi
# The examples in it are settings that parley takes.
sed -n 's/\\-/-/g; /^\.SH EXAMPLES/,$s/^\\fBparley \(run\|node\|sim\)\(.*\)\\fR$/\2/p' "$page" > "$folder/examples"
[ "$(wc -l < "$folder/examples")" -eq 5 ]
# shellcheck disable=SC2086
while read -r example; do "$program" check $example > /dev/null; done < "$folder/examples"
# A thread of it may outlive the last node.
readelf -d "$libraries/libparley.so" | grep -q NODELETE
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -o "$folder/embed" "$2/examples/embed.c" \
    $(pkg-config --cflags --libs parley)
LD_LIBRARY_PATH=$libraries "$folder/embed" one 1 of 1 > "$folder/said"
grep -q '^agreed 1 of 1 nodes, x = 1, ' "$folder/said"

# The simulator is in it, too: one training function, rehearsed and deployed.
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -o "$folder/rehearse" "$2/examples/rehearse.c" \
    $(pkg-config --cflags --libs parley) -lm
for i in 1 2; do LD_LIBRARY_PATH=$libraries "$folder/rehearse" 16 > "$folder/run$i"; done
cmp "$folder/run1" "$folder/run2"
grep -q '^ 9 s: 11 nodes, ' "$folder/run1"
grep -q '^agreed 11 of 16 nodes, ' "$folder/run1"
LD_LIBRARY_PATH=$libraries "$folder/rehearse" 1 0 > "$folder/said"
grep -q '^agreed 1 of 1 nodes, ' "$folder/said"

# To a program in C++, too, where there are compilers for it.
cat > "$folder/text.cc" << 'END'
#include <cstdio>

#include "parley/parley.h"
#include "parley/sim.h"

int main()
{
    parley_options options;
    parley_options_defaults(&options);
    std::puts(parley_error_text(parley_config_check(&options.config, nullptr, 0)));
    std::puts(parley_version());
    parley_sim_options alone = {};
    parley_sim *sim;
    if (parley_sim_new(&sim, &alone) != 0) return 1;
    parley_sim_free(sim);
}
END
for compiler in c++ clang++; do
    command -v $compiler > /dev/null || continue
    # shellcheck disable=SC2046
    $compiler -Wall -Wextra -Wpedantic -Wshadow -Wold-style-cast -Werror -o "$folder/text" "$folder/text.cc" $(pkg-config --cflags --libs parley)
    LD_LIBRARY_PATH=$libraries "$folder/text" > "$folder/said"
    grep -q '^bad usage' "$folder/said"
    grep -qx "$(pkg-config --modversion parley)" "$folder/said"
done
