#!/usr/bin/env bash
# Runs commands at the same time; fails if one of them fails. The output of the last one comes at once, that of the others,
# which wait for downloads or use one CPU, when all have ended.
set -uo pipefail

logs=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null; rm -rf "$logs"' EXIT
beside=()
while [ $# -gt 1 ]; do
    bash -c "$1" > "$logs/${#beside[@]}" 2>&1 &
    beside+=($!)
    shift
done
bash -c "$1"
status=$?
for at in "${!beside[@]}"; do
    wait "${beside[at]}" || status=$?
    cat "$logs/$at"
done
exit "$status"
