#!/usr/bin/env bash
# Runs commands at the same time; fails if one of them fails. The output of the last one comes at once, that of the others,
# which wait for downloads or use one CPU, when all have ended. Those that failed are named at the end, with what failed in them
# and their last lines.
set -uo pipefail

logs=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null; rm -rf "$logs"' EXIT
commands=("$@")
last=$(($# - 1))
for ((at = 0; at < last; at++)); do
    bash -c "${commands[at]}" > "$logs/$at" 2>&1 &
    beside[at]=$!
done
bash -c "${commands[last]}" 2>&1 | tee "$logs/$last"
ended[last]=${PIPESTATUS[0]}
for ((at = 0; at < last; at++)); do
    wait "${beside[at]}"
    ended[at]=$?
    cat "$logs/$at"
done

status=0
for at in "${!commands[@]}"; do
    if [ "${ended[at]}" -ne 0 ]; then
        status=${ended[at]}
        printf '\ntogether: FAILED (exit code %s): %s\n' "$status" "${commands[at]}"
        grep -n -B 2 -e 'FAILED' -e '^error' "$logs/$at" | cut -c 1-400 | tail -n 30 | sed 's/^/    /'
        tail -n 15 "$logs/$at" | grep -v '^test result:' | cut -c 1-400 | sed 's/^/    /'
    fi
done
exit "$status"
