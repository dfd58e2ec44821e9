#!/usr/bin/env bash
# Runs two commands at the same time; fails if one of them fails. The output of the first, which waits for downloads and
# uses one CPU, comes when both have ended.
set -uo pipefail

log=$(mktemp)
trap 'kill $(jobs -p) 2> /dev/null; rm -f "$log"' EXIT
bash -c "$1" > "$log" 2>&1 &
first=$!
bash -c "$2"
status=$?
wait "$first" || status=$?
cat "$log"
exit "$status"
