#!/bin/sh
# One of four nodes killed at each state of an exchange, in both roles: eleven in all.
exec "$(dirname "$0")/../soak.sh" --parley "$1" --count 11 kill_at_state
