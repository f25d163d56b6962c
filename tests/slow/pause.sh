#!/bin/sh
# Three nodes of which one sleeps for 20 s (SIGSTOP) and comes back.
exec "$(dirname "$0")/../soak.sh" --parley "$1" --count 1 pause
