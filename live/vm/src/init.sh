#!/bin/sh
# The guest's first process. Messages of its own go to the kernel's console; the command's output
# goes through pipes and two ports, its exit status through a third, so that nothing mixes.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME=/root LANG=C.UTF-8

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
mkdir -p /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t devpts devpts /dev/pts
# Files that were given below /tmp stay in sight: they are in memory as they are.
[ -n "$(ls -A /tmp)" ] || mount -t tmpfs -o mode=1777 tmp /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug
mount -t bpf bpf /sys/fs/bpf
for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
    echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
done
ip link set lo up
hostname guest
ulimit -H -n 524288

# The ports show some time after the driver: wait for all three.
find_port() {
    for port in /sys/class/virtio-ports/*; do
        [ "$(cat "$port/name" 2>/dev/null)" = "$1" ] && echo "/dev/${port##*/}" && return
    done
    return 1
}
until stdout=$(find_port warmq.stdout) && stderr=$(find_port warmq.stderr) &&
    control=$(find_port warmq.control); do
    sleep 0.05
done
exec 3<>"$control"

# Without a command the machine is kept as it is now (boots.rs). Each that goes on from here gets its files by the port.
if [ ! -e /run/warmq/arguments ]; then
    echo kept >&3
    (cd / && exec cpio -idmu) <&3 2>/dev/null
    until [ "$line" = go ]; do read -r line <&3; done
fi

# Each stream on its way to the host is counted: by the counts the host knows when it has all.
cd /run/warmq
mkfifo stdout stderr
tee "$stdout" <stdout 3>&- | wc -c >stdout.count 3>&- &
tee "$stderr" <stderr 3>&- | wc -c >stderr.count 3>&- &
before=" $(echo /proc/[0-9]*) "

# Exactly the arguments that were given: nothing is quoted, so nothing is unquoted. A dot keeps the
# newlines at the end of each from the shell.
set --
number=0
while [ -e "arguments/$number" ]; do
    argument=$(cat "arguments/$number")
    set -- "$@" "${argument%.}"
    number=$((number + 1))
done
number=0
while [ -e "environment/$number" ]; do
    argument=$(cat "environment/$number")
    export "${argument%.}"
    number=$((number + 1))
done

echo boot >&3
( cd / && exec setsid "$@" 3>&- ) </dev/null >stdout 2>stderr
status=$?

# What the command left behind would keep the pipes open: it ends with the command.
end_others() {
    for process in /proc/[0-9]*; do
        case $before in
        *" $process "*) ;;
        *) kill -9 "${process#/proc/}" ;;
        esac
    done 2>/dev/null
}
attempts=0
until [ -s stdout.count ] && [ -s stderr.count ] || [ "$attempts" = 100 ]; do
    end_others
    sleep 0.05
    attempts=$((attempts + 1))
done
echo "exit $status $(cat stdout.count) $(cat stderr.count)" >&3

# The host ends the guest when it has everything.
read -r _ <&3
poweroff -f
