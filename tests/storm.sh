#!/bin/sh
# Eight real nodes under one fault after the other: see --help.
exec python3 "$(dirname "$0")/faults/storm.py" "$@"
