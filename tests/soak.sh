#!/bin/sh
# Repeated trials of real nodes under faults: see soak.py --help.
exec python3 "$(dirname "$0")/soak.py" "$@"
