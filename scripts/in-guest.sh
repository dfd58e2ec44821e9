#!/bin/sh
# How scx_warmq is started, ended, looked at and labelled by, on a real kernel. Run as root in a guest (scripts/vm-test.sh), with
# the names of checks: those below, after the word `check`.
files=$(mktemp -d)
said=$files/said
player=
hogs=
passed=0
failed=0

fail() {
    echo "    $*; sched_ext: $(state)"
    sed 's/^/    said: /' "$said"
    return 1
}

state() { cat /sys/kernel/sched_ext/state; }

# Waits for a command to succeed, for so many seconds at most. (Loading is slow in an emulated guest.)
until_true() { # SECONDS COMMAND...
    left=$((5 * $1))
    shift
    until "$@"; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || return 1
        sleep 0.2
    done
}

is() { [ "$(state)" = "$1" ]; }
is_gone() { ! kill -0 "$pid" 2> /dev/null; }
is_there() { is enabled && scx_warmq --stats-json > "$files/stats" 2> /dev/null; }
is_there_or_gone() { is_gone || is_there; }

start() { # OPTIONS...
    scx_warmq "$@" > /dev/null 2> "$said" &
    pid=$!
    until_true 60 is_there_or_gone
    is_there && return
    fail "it does not load with: $*"
    end KILL
    return 1
}

end() { # [SIGNAL]; returns its status
    kill -"${1:-INT}" "$pid" 2> /dev/null
    wait "$pid"
    status=$?
    until_true 10 is disabled
    return "$status"
}

hogs() { # PROGRAM... (without one, a shell)
    hogs=
    for _ in 1 2 3 4; do
        "${@:-$files/hog}" &
        hogs="$hogs $!"
    done
}
stop_hogs() {
    # shellcheck disable=SC2086
    kill $hogs 2> /dev/null
}

# CPU time that each hog has had, in ticks.
had() {
    for hog in $hogs; do
        cut -d ' ' -f 14 "/proc/$hog/stat"
    done
}
all_run() {
    before=$(had)
    sleep 2
    after=$(had)
    for hog in $(seq "$(echo "$after" | wc -l)"); do
        [ "$(echo "$after" | sed -n "${hog}p")" -gt "$(echo "$before" | sed -n "${hog}p")" ] || return 1
    done
}

check_leaves() { # SIGINT and SIGTERM end it with status 0, and the kernel's own scheduler runs all tasks again
    for signal in INT TERM; do
        hogs
        start || return 1
        end "$signal" || fail "signal $signal: status $?" || return 1
        is disabled || fail "it is still there after signal $signal" || return 1
        all_run || fail "a task does not run any more: $before, then $after" || return 1
        stop_hogs
    done
}

check_options() { # it loads with each option by which the verifier sees another program
    for options in "--infer --place llc" --no-groups --no-preempt "--scope user" "--scope system"; do
        # shellcheck disable=SC2086
        start $options || return 1
        end || fail "$options: it ends with $?" || return 1
    done
}

check_one() { # a second one does not start, names the first, and does not disturb it
    start || return 1
    ! second=$(scx_warmq 2>&1) || fail "a second one starts" || return 1
    echo "$second" | grep -q warmq || fail "the second one says: $second" || return 1
    is enabled && ! is_gone || fail "the first one is gone" || return 1
    end
}

check_ejected() { # stopped by the kernel (SysRq-S), it says why, ends with a status of its own, and can be loaded again
    start || return 1
    echo S > /proc/sysrq-trigger
    until_true 20 is_gone || fail "it does not end" || return 1
    wait "$pid"
    status=$?
    [ "$status" -gt 0 ] && [ "$status" -lt 128 ] || fail "its status is $status" || return 1
    grep -qi sysrq "$said" || fail "it does not say why" || return 1
    start && end
}

hears() { # WHAT; whether a program that names its data is heard, as it says
    rooms > "$files/rooms" &
    rooms=$!
    until_true 10 grep -qs "$1" "$files/rooms"
    heard=$?
    kill "$rooms" 2> /dev/null
    return "$heard"
}

check_hooks() { # where the hook in prctl does not work it schedules, hears no hint, and says so; elsewhere it hears them
    start || return 1
    hears "a scheduler listens" || fail "a hint is not heard: $(cat "$files/rooms")" || return 1
    end || return 1
    echo 0 > /proc/sys/kernel/ftrace_enabled || fail "hooks cannot be switched off (on 7.3 they cannot)" || return 1
    start && hears "no scheduler listens"
    status=$?
    echo 1 > /proc/sys/kernel/ftrace_enabled
    [ "$status" = 0 ] || fail "without hooks: $(cat "$files/rooms")" || return 1
    grep -q "programs cannot hint" "$said" || fail "it does not say what is missing" || return 1
    end
}

is_labelled() {
    scx_warmq --stats-json | tr -d ' \n' | sed 's/{/\n{/g' | grep '"fragment":7,' | grep -q '"members":4,'
}

check_label() { # a label by name puts threads into a group, and one that fits nobody is an error
    start --place cpu || return 1
    cp "$files/hog" "$files/worker-a"
    hogs "$files/worker-a"
    mine=$hogs
    hogs
    scx_warmq label --name 'worker-*' 7 > /dev/null || fail "the label is refused" || return 1
    until_true 10 is_labelled || fail "$(tr -d ' \n' < "$files/stats")" || return 1
    ! scx_warmq label --name 'nobody-*' 7 2> /dev/null || fail "a label that fits nobody is taken" || return 1
    stop_hogs
    hogs=$mine
    stop_hogs
    end
}

looks() { # GROUP
    setpriv --reuid=65534 --regid="$1" --clear-groups scx_warmq --stats-json > /dev/null 2>&1
}

check_access() { # the members of the Unix group that was named may look at it, and nobody else
    start --access-group 4711 || return 1
    chmod 701 /sys/fs/bpf
    for pin in "slots 660" "state 640" "labels 600"; do
        found=$(stat -c '%a %g' "/sys/fs/bpf/scx_warmq/${pin% *}")
        [ "$found" = "${pin#* } 4711" ] || fail "${pin% *} has $found" || return 1
    done
    looks 4711 || fail "a member of the group cannot look at it" || return 1
    ! looks 4712 || fail "somebody of another group can look at it" || return 1
    end
}

# A counter of scx_warmq.
counter() { # NAME
    scx_warmq --stats-json | tr -d ' \n' | sed "s/.*\"$1\":\([0-9]*\).*/\1/"
}

# How often tasks have waited for a CPU: of all, which stands before that of each group.
waits() {
    scx_warmq --stats-json | tr -d ' \n' | sed 's/"domains":.*//; s/.*"waits":{[^}]*"count":\[\([0-9,]*\)\].*/\1/' | tr , '\n' |
        awk '{ sum += $1 } END { print sum }'
}

# Interrupts and kernel threads take CPU time that no task is charged for: one wait of a thousand may be over its bound.
check_stress() { # after 60 s of stress-ng it is still there, and nobody has waited for too long
    start --infer || return 1
    stress-ng --cpu 4 --switch 2 --pipe 2 --fork 2 --futex 2 --yield 2 --affinity 2 --timer 1 \
        --timeout 60 --temp-path "$files" > "$files/stress" 2>&1 || fail "stress-ng: $(cat "$files/stress")" || return 1
    is enabled && ! is_gone || fail "it is gone" || return 1
    over=$(counter over_bound)
    all=$(waits)
    [ "$all" -gt 0 ] && [ $((over * 1000)) -le "$all" ] || fail "$over of $all waits over the bound: $(tr -d ' \n' < "$files/stats")" || return 1
    end
}

play() { # FILE OPTIONS... begins to play it with real tasks, under whatever scheduler is there
    warmq-player --scenario "$@" --warmup 0s --no-record > /dev/null 2> "$files/player" &
    player=$!
}

knows() { # HOW-MANY groups with members
    is_there && [ "$(tr -d ' \n' < "$files/stats" | grep -o '"members":[1-9]' | wc -l)" -eq "$1" ]
}

check_hotplug() { # it runs all tasks, and knows all fragments, after a CPU went offline and online under load
    start --place cpu || return 1
    play /fragments-at-home.toml --time 1000s
    until_true 60 knows 4 || fail "of 4 fragments it knows: $(cat "$files/stats" "$files/player" | tr -d ' \n')" || return 1
    hogs=$(grep -l '^thread' /proc/[0-9]*/task/*/comm | cut -d / -f 3-5)
    [ "$(echo "$hogs" | wc -l)" -eq 8 ] || fail "of 8 tasks there are: $hogs" || return 1
    for online in 0 1; do
        echo "$online" > /sys/devices/system/cpu/cpu1/online
        until_true 180 is_there_or_gone
        is_there && ! is_gone || fail "it does not come back after cpu1 = $online" || return 1
        sleep 1
        all_run || fail "a task does not run after cpu1 = $online: $before, then $after" || return 1
    done
    until_true 10 knows 4 || fail "of 4 fragments it knows: $(tr -d ' \n' < "$files/stats")" || return 1
    kill "$player"
    wait "$player"
    end
}

# The runnable weight of all places.
weight() {
    scx_warmq --stats-json | tr -d ' \n' | sed 's/.*"places"://; s/\],"cpus":\[{.*//' | grep -o '"weight":[0-9]*' |
        awk -F : '{ sum += $2 } END { print sum }'
}

# Who reads the statistics is runnable meanwhile; others may be at one time or another.
has_no_weight() {
    [ "$(weight)" -le $((2 * $(counter weight_nice_0))) ]
}

# Each of eight tasks changes all that it may while it runs, waits and sleeps; others fork all the time.
churn='
[group.a]
[group.b]
[semaphore.done]
[task.turncoat]
count = 8
body = [{ repeat = 4096, as = "turn", body = [
    { cpus = "cpu 0" }, { fragment = "turn % 7" }, { nice = 1 }, { run = "300us" }, { group = "a" }, { sleep = "900us" },
    { cpus = "cpu 1" }, { fragment = "turn % 5" }, { nice = 2 }, { run = "300us" }, { policy = "batch" }, { sleep = "300us" },
    { cpus = "all" }, { fragment = "none" }, { nice = 3 }, { run = "300us" }, { group = "b" }, { policy = "normal" },
    { fragment = "turn % 3" }, { run = "300us" }, { nice = 0 }, { sleep = "100us" },
] }]
[task.parent]
count = 2
body = [{ fork = "child" }, { lower = "done" }]
[task.child]
spawned = true
times = 1
body = [{ run = "100us" }, { raise = "done" }]
'

check_churn() { # forks, ends, changes of affinity, weight, class, hint and cgroup in any state do not stop it, and no weight is left
    start --infer || return 1
    echo "$churn" > "$files/churn.toml"
    play "$files/churn.toml" --world guest --time 8s
    mkdir -p /sys/fs/cgroup/here /sys/fs/cgroup/there
    for _ in $(seq 10); do
        hogs
        for group in here there here there; do
            for hog in $hogs; do
                echo "$hog" > "/sys/fs/cgroup/$group/cgroup.procs"
            done
            sleep 0.02
        done
        stop_hogs
    done
    wait "$player" || fail "$(cat "$files/player")" || return 1
    is enabled && ! is_gone || fail "it is gone" || return 1
    until_true 10 has_no_weight || fail "weight $(weight) is left although no task runs" || return 1
    rmdir /sys/fs/cgroup/here /sys/fs/cgroup/there
    end
}

# What a switch costs under the scheduler that is loaded, in units of a write and a read of a pipe.
switch_cost() {
    warmq-drill --switch-cost | sed 's/switch cost \([0-9.]*\).*/\1/'
}

# Each time that it is loaded the kernel draws anew how it hashes the numbers of dispatch queues (rhashtable_init()), and where
# ours collide a switch takes up to 50 instructions more: the least of three loads.
check_switch() { # with a switch, a write and a read of a pipe take at most 4.2 times as long as without
    ours=9
    for _ in 1 2 3; do
        start || return 1
        ours=$(printf '%s\n%s\n' "$ours" "$(switch_cost)" | sort -n | head -n 1)
        end || return 1
    done
    other="scx_bpfland is not in this guest"
    if command -v scx_bpfland > /dev/null; then
        scx_bpfland > /dev/null 2>&1 &
        pid=$!
        until_true 60 is enabled
        other="scx_bpfland $(switch_cost)"
        end
    fi
    echo "    scx_warmq $ours, the kernel's own scheduler $(switch_cost), $other"
    [ "$ours" != 9 ] && awk "BEGIN { exit !($ours <= 4.2) }" || fail "it costs $ours"
}

printf '#!/bin/sh\nwhile :; do :; done\n' > "$files/hog"
chmod +x "$files/hog"
for name in "$@"; do
    : > "$said"
    if "check_$name"; then
        passed=$((passed + 1))
        echo "check $name ... ok"
    else
        failed=$((failed + 1))
        echo "check $name ... FAILED"
        # What it started must not be in the way of the next.
        # shellcheck disable=SC2086
        kill -KILL $player $hogs 2> /dev/null
        end KILL
    fi
done
verdict=ok
[ "$failed" = 0 ] || verdict=FAILED
echo "test result: $verdict. $passed passed; $failed failed; 0 ignored; in a guest"
[ "$failed" = 0 ]
