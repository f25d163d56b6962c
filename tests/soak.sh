#!/bin/sh
# Repeated trials of real nodes under faults: see --help.
exec python3 "$(dirname "$0")/faults/soak.py" "$@"
