#!/usr/bin/env python3
"""Does `warmq diagnose` say anything false of healthy programs on a busy machine?

    sudo bench/healthy.py [--warmq FILE] [--only PATTERN] [--keep FOLDER]

Each program runs for some seconds while `warmq watch` records. A row has its verdicts, and what its
tasks ran and waited in all: by the diagnosis (D), and by the kernel (K), which counts both for each
task and sends them when it exits (taskstats(7): the figures of /proc/PID/task/*/schedstat, also of
tasks that live for a moment). Besides: what the program's cgroup used (cpu.stat), the share of the
time for which somebody of it waited (cpu.pressure) and somebody of the machine
(/proc/pressure/cpu), the CPUs' idle time (/proc/stat), and the waits beside which the diagnosis saw
an idle CPU. Below a row stands each verdict with the worst of its tasks, and what that waited by
either. A program that is not installed is named with the package that has it.
"""

import argparse
import contextlib
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

SECONDS = 4
CPUS = os.cpu_count()
BY_NOBODY = "runuser -u nobody --"
POSTGRES = next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin"))), "")
PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin", POSTGRES])

# Each function is long enough that a compiler works for some ms.
FUNCTION = "".join(f"x = x * {n}u + (x >> {n % 30 + 1}); if (x & {n}u) x ^= y; else y += x; " for n in range(1, 60))
MAKE_SOURCES = f"""
import sys
body = {FUNCTION!r}
for file in range({20 * CPUS}):
    with open(f'f{{file}}.c', 'w') as out:
        print('#include <stdio.h>\\n#include <stdlib.h>\\n#include <string.h>', file=out)
        for f in range(12):
            print(f'unsigned f{{file}}_{{f}}(unsigned x, unsigned y) {{{{ {{body}} return x; }}}}', file=out)
open('Makefile', 'w').write('all: $(patsubst %.c,%.o,$(wildcard *.c))\\n%.o: %.c\\n\\tgcc -O2 -c $<\\n')
"""
RUST = f"""
open('src/lib.rs', 'w').write(''.join(
    f'pub fn f{{n}}(v: &[u64]) -> Vec<String> {{{{ let mut v: Vec<_> = v.iter().map(|x| x ^ {{n}}).collect(); '
    'v.sort(); v.iter().map(|x| format!("{{:>8}}", x)).collect() }}\\n' for n in range({50 * CPUS})))
"""
JAVA = """
import java.util.stream.*;
class Main { public static void main(String[] a) {
  for (long until = System.nanoTime() + %d000000000L; System.nanoTime() < until; )
    IntStream.range(0, 200000).parallel().mapToObj(Integer::toString).collect(Collectors.groupingBy(String::length));
} }
""" % SECONDS
NODE = """
require('http').createServer((q, r) => {
  let s = 0; for (let i = 0; i < 50000; i++) s += Math.sqrt(i);
  r.end(JSON.stringify({s, at: Date.now()}));
}).listen(18084, '127.0.0.1');
"""
POOL = f"""
import multiprocessing, time
def work(n):
    return sum(i * i % 7 for i in range(20000 + n % 1000))
if __name__ == '__main__':
    until = time.monotonic() + {SECONDS}
    with multiprocessing.Pool({2 * CPUS}) as pool:
        while time.monotonic() < until:
            pool.map(work, range(200), chunksize=5)
"""
SQL = """
create table t (id integer primary key, k integer, v text); create index k on t (k);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000)
insert into t select i, abs(random() % 100000), hex(randomblob(16)) from n;
select count(*), sum(length(v)) from t group by k % 100; update t set k = k + 1 where k % 3 = 0;
"""
NGINX = """
worker_processes auto; daemon off; user nobody nogroup; pid nginx.pid; error_log error.log;
events {} http { access_log off; server { listen 127.0.0.1:18080; root www; } }
"""


def python(text):
    return f"python3 - <<'END'\n{text}\nEND\n"


def file(name, text):
    return f"cat > {name} <<'END'\n{text}\nEND\n"


# Until a server answers; and after its client it ends.
def served(server, port, client):
    wait = f"until (: < /dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.05; done"
    return f"{server} & server=$!; {wait}; {client}; kill $server; wait $server"


NGINX_SETUP = file("nginx.conf", NGINX) + "mkdir www; head -c 4000 /dev/urandom > www/index.html; chmod -R a+rX ."
NGINX_SERVER = "nginx -p . -c nginx.conf"
PG_SERVER = f"{BY_NOBODY} postgres -D data -p 18081 -k $PWD -c max_connections=50"
PG_SETUP = (
    f"mkdir data run; chown nobody . data; {BY_NOBODY} initdb -D data -A trust; "
    + served(PG_SERVER, 18081, f"{BY_NOBODY} pgbench -h 127.0.0.1 -p 18081 -i -s 5 postgres")
)
PGBENCH = f"{BY_NOBODY} pgbench -h 127.0.0.1 -p 18081 -c {4 * CPUS} -j {CPUS} -T {SECONDS}"
RANDOM_WORDS = "head -c 20000000 /dev/urandom | base64 > words"
RSYNCD = "port = 18083\naddress = 127.0.0.1\nuse chroot = no\n[all]\npath = from\n"

# Name, {program: its package}, what comes before the recording, what is recorded.
LOADS = [
    ("make -j, gcc", {"make": "make", "gcc": "gcc"}, python(MAKE_SOURCES), f"make -j{CPUS}"),
    ("make -j x 4, gcc", {"make": "make", "gcc": "gcc"}, python(MAKE_SOURCES), f"make -j{4 * CPUS}"),
    (
        "cargo build",
        {"cargo": "cargo"},
        "cargo init --lib --name small --vcs none; " + python(RUST),
        "cargo build --offline --release",
    ),
    (
        "redis-benchmark",
        {"redis-server": "redis-server", "redis-benchmark": "redis-tools"},
        "",
        served(
            "redis-server --port 18082 --save '' --appendonly no",
            18082,
            f"timeout {SECONDS} redis-benchmark -p 18082 -t get,set -c 50 -n 10000000 -q",
        ),
    ),
    ("pgbench -S", {"postgres": "postgresql-15"}, PG_SETUP, served(PG_SERVER, 18081, f"{PGBENCH} -S postgres")),
    ("pgbench", {"postgres": "postgresql-15"}, PG_SETUP, served(PG_SERVER, 18081, f"{PGBENCH} postgres")),
    (
        "nginx, ab",
        {"nginx": "nginx-light", "ab": "apache2-utils"},
        NGINX_SETUP,
        served(NGINX_SERVER, 18080, f"ab -q -c 50 -t {SECONDS} -n 10000000 http://127.0.0.1:18080/index.html"),
    ),
    (
        "nginx, wrk",
        {"nginx": "nginx-light", "wrk": "wrk"},
        NGINX_SETUP,
        served(NGINX_SERVER, 18080, f"wrk -t {CPUS} -c 40 -d {SECONDS} http://127.0.0.1:18080/index.html"),
    ),
    (
        "memcached, memcslap",
        {"memcached": "memcached", "memcslap": "libmemcached-tools"},
        "",
        served(
            f"memcached -u nobody -l 127.0.0.1 -p 18085 -t {CPUS}",
            18085,
            "for n in 1 2 3 4; do memcslap --servers=127.0.0.1:18085 --concurrency=8 --execute-number=4000; done",
        ),
    ),
    ("sysbench cpu", {"sysbench": "sysbench"}, "", f"sysbench cpu --threads={2 * CPUS} --time={SECONDS} run"),
    ("sysbench threads", {"sysbench": "sysbench"}, "", f"sysbench threads --threads={4 * CPUS} --time={SECONDS} run"),
    ("sysbench mutex", {"sysbench": "sysbench"}, "", f"sysbench mutex --threads={8 * CPUS} --mutex-locks=40000 run"),
    (
        "stress-ng, mixed",
        {"stress-ng": "stress-ng"},
        "",
        f"stress-ng --cpu 1 --pipe 1 --fork 1 --timer 1 --switch 1 --vm 1 --vm-bytes 64M -t {SECONDS}",
    ),
    ("zstd -T0", {"zstd": "zstd"}, RANDOM_WORDS, "zstd -T0 -9 -f words"),
    ("xz -T0", {"xz": "xz-utils"}, RANDOM_WORDS, "xz -T0 -2 -k --block-size=4MiB words"),
    (
        "ffmpeg, libx264",
        {"ffmpeg": "ffmpeg"},
        "",
        "ffmpeg -v error -f lavfi -i testsrc2=size=1280x720:rate=30 -t 6 -c:v libx264 -y out.mp4",
    ),
    (
        "git repack",
        {"git": "git"},
        f"git clone -q --bare {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))} it",
        "git -C it repack -adfq --window=30",
    ),
    ("sqlite3", {"sqlite3": "sqlite3"}, file("it.sql", SQL), "sqlite3 it.db < it.sql"),
    ("python, Pool", {"python3": "python3"}, file("pool.py", POOL), "python3 pool.py"),
    (
        "node, ab",
        {"node": "nodejs", "ab": "apache2-utils"},
        file("it.js", NODE),
        served("node it.js", 18084, f"ab -q -c 20 -t {SECONDS} -n 10000000 http://127.0.0.1:18084/"),
    ),
    ("java, streams", {"javac": "default-jdk-headless"}, file("Main.java", JAVA) + "javac Main.java", "java Main"),
    (
        "rsync, loopback",
        {"rsync": "rsync"},
        file("rsyncd.conf", RSYNCD)
        + "mkdir from; (cd from; for n in $(seq 200); do head -c 1500000 /dev/urandom > $n; done)",
        served("rsync --daemon --no-detach --config=rsyncd.conf", 18083, "rsync -az rsync://127.0.0.1:18083/all/ to"),
    ),
    ("openssl speed", {"openssl": "openssl"}, "", f"openssl speed -multi {CPUS} -seconds 2 rsa2048"),
]


class Exits:
    """What the kernel counted of each task that exited: taskstats over netlink (linux/taskstats.h)."""

    # cpu_delay_total, cpu_run_virtual_total (ns), ac_comm, ac_pid, ac_ppid of struct taskstats.
    DELAY, RAN, NAME, PID, PARENT = 24, 72, 80, 128, 132
    TYPE_AGGR_PID, TYPE_STATS, REGISTER_CPUMASK = 4, 3, 3

    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.bind((0, 0))
        self.ask(16, 3, 2, b"TASKSTATS\0")
        answer = self.socket.recv(65536)
        family = dict(self.attributes(answer[20:])).get(1)
        if family is None:
            sys.exit("healthy: this kernel has no taskstats (CONFIG_TASKSTATS): it counts nobody's waits that ended")
        self.ask(struct.unpack("H", family)[0], 1, self.REGISTER_CPUMASK, f"0-{CPUS - 1}\0".encode())
        self.socket.setblocking(False)
        self.read()

    def ask(self, family, command, kind, value):
        attribute = struct.pack("HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)
        self.socket.send(struct.pack("IHHIIBBH", 20 + len(attribute), family, 1, 0, 0, command, 1, 0) + attribute)

    @staticmethod
    def attributes(data):
        while len(data) >= 4:
            length, kind = struct.unpack_from("HH", data)
            if length < 4:
                return
            yield kind, data[4:length]
            data = data[(length + 3) & ~3 :]

    def read(self):
        """{thread: (name, parent, ran, waited)} of those that exited since the last call."""
        found = {}
        while True:
            try:
                message = self.socket.recv(65536)
            except BlockingIOError:
                return found
            nested = dict(self.attributes(message[20:])).get(self.TYPE_AGGR_PID)
            stats = nested and dict(self.attributes(nested)).get(self.TYPE_STATS)
            if not stats:
                continue
            word = lambda format_, at, stats=stats: struct.unpack_from(format_, stats, at)[0]
            name = stats[self.NAME : self.NAME + 32].split(b"\0")[0].decode(errors="replace")
            found[word("I", self.PID)] = (name, word("I", self.PARENT), word("Q", self.RAN), word("Q", self.DELAY))


def of_program(exits, first):
    """Those that are, or come from, the process `first`, also of parents that died (they are ours then)."""
    kin = {first}
    while True:
        more = {tid for tid, (_, parent, _, _) in exits.items() if parent in kin or parent == os.getpid()} - kin
        if not more:
            return {tid: exits[tid] for tid in kin if tid in exits}
        kin |= more


def number(path, pattern):
    with contextlib.suppress(OSError):
        with open(path, encoding="ascii") as text:
            return int(re.search(pattern, text.read())[1])
    return 0


class Counts:
    """What the kernel counts of the machine and of a cgroup, in s."""

    def __init__(self, group):
        self.at = time.monotonic()
        self.machine = number("/proc/pressure/cpu", r"some.*total=(\d+)") / 1e6
        self.idle = number("/proc/stat", r"cpu +(?:\d+ ){3}(\d+)") / os.sysconf("SC_CLK_TCK")
        self.stolen = number("/proc/stat", r"cpu +(?:\d+ ){7}(\d+)") / os.sysconf("SC_CLK_TCK")
        self.used = number(f"{group}/cpu.stat", r"usage_usec (\d+)") / 1e6
        self.waited = number(f"{group}/cpu.pressure", r"some.*total=(\d+)") / 1e6


@contextlib.contextmanager
def cgroup():
    """A cgroup of version 2, without controllers: it counts, and shares nothing out."""
    mounts = [line.split() for line in open("/proc/mounts", encoding="utf-8")]
    root = next((mount[1] for mount in mounts if mount[2] == "cgroup2"), None)
    if root is None:
        sys.exit("healthy: no cgroup2 is mounted: mount -t cgroup2 none /sys/fs/cgroup")
    path = os.path.join(root, f"healthy-{os.getpid()}")
    os.mkdir(path)
    try:
        yield path
    finally:
        time.sleep(0.2)
        os.rmdir(path)


def shell(text, folder, **more):
    environment = {**os.environ, "PATH": PATH}
    return subprocess.Popen(
        ["bash", "-c", text], cwd=folder, env=environment, stdin=subprocess.DEVNULL, start_new_session=True, **more
    )


def reap():
    """Children of children that died became ours."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def recorded(warmq, exits, command, folder, trace):
    """Runs `command` while a recorder runs: its process, what the kernel counted before and after, who exited."""
    with cgroup() as group, open(os.path.join(folder, "output"), "w", encoding="utf-8") as output:
        watch = [warmq, "watch", "--only-record", "--for", "120s", "--out", trace]
        with subprocess.Popen(watch, stdout=output, stderr=output) as recorder:
            time.sleep(1)
            exits.read()
            before = Counts(group)
            enter = f"echo $$ > {group}/cgroup.procs; {command}"
            program = shell(enter, folder, stdout=output, stderr=output)
            try:
                status = program.wait(timeout=60)
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, signal.SIGKILL)
                status = program.wait()
            # Who it left behind ends.
            time.sleep(0.1)
            reap()
            after = Counts(group)
            gone = of_program(exits.read(), program.pid)
            recorder.send_signal(signal.SIGINT)
            recorder.wait()
    return status, before, after, gone


HEAD = ["program", "verdicts", "ran D", "ran K", "cpu.stat", "waited D", "waited K", "PSI", "of all", "idle", "beside"]
WIDTHS = [20, 34, 7, 7, 9, 9, 9, 6, 6, 6, 7]


def row(cells):
    print(*(str(cell).ljust(width) if n < 2 else str(cell).rjust(width)
            for n, (cell, width) in enumerate(zip(cells, WIDTHS))), flush=True)


def shown(name, diagnosis, before, after, gone):
    tasks = [task for task in diagnosis["activity"]["waiting"] if task["tid"] in gone]
    sums = lambda key: sum(task[key] for task in tasks) / 1e9
    took = after.at - before.at
    own, others = [], []
    for verdict in diagnosis["verdicts"]:
        ours = [task for task in verdict["tasks"] if task["tid"] in gone]
        (own if ours else others).append((verdict, ours))
    row([
        name,
        ", ".join(verdict["kind"] for verdict, _ in own) or "none",
        f"{sums('ran_ns'):.2f}",
        f"{sum(ran for _, _, ran, _ in gone.values()) / 1e9:.2f}",
        f"{after.used - before.used:.2f}",
        f"{sums('waited_ns'):.2f}",
        f"{sum(waited for _, _, _, waited in gone.values()) / 1e9:.2f}",
        f"{100 * (after.waited - before.waited) / took:.0f} %",
        f"{100 * (after.machine - before.machine) / took:.0f} %",
        f"{100 * (after.idle - before.idle) / took / CPUS:.0f} %",
        f"{sums('idle_allowed_ns'):.2f}",
    ])
    by_thread = {task["tid"]: task for task in tasks}
    for verdict, ours in own:
        said = f"    {verdict['kind']}, {len(ours)} tasks: {verdict['says']} {verdict['because']}"
        print(said)
        for task in ours[:3]:
            seen = by_thread.get(task["tid"], {"ran_ns": 0, "waited_ns": 0})
            _, _, ran, waited = gone[task["tid"]]
            print(f"        {task['name']} ({task['tid']}): ran {seen['ran_ns'] / 1e6:.0f} ms, by the kernel "
                  f"{ran / 1e6:.0f}; waited {seen['waited_ns'] / 1e6:.0f} ms, by the kernel {waited / 1e6:.0f}")
    if others:
        print("    of others:", "; ".join(f"{verdict['kind']}: {verdict['says']}" for verdict, _ in others))
    stolen = after.stolen - before.stolen
    if stolen > 0.02 * took:
        print(f"    a hypervisor took {stolen:.2f} s")


def missing(programs):
    return [package for program, package in programs.items() if not shutil.which(program, path=PATH)]


def play(warmq, exits, load, keep):
    name, programs, setup, command = load
    packages = missing(programs)
    if packages:
        print(f"{name:20} left out: apt-get install {' '.join(packages)}", flush=True)
        return
    with tempfile.TemporaryDirectory(prefix="healthy-") as folder:
        os.chmod(folder, 0o755)
        with shell(setup, folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as before:
            said = before.communicate()[0].decode(errors="replace")
        trace = os.path.join(keep, re.sub(r"[^a-z0-9]+", "-", name.lower()) + ".warmq")
        status, before, after, gone = recorded(warmq, exits, command, folder, trace)
        if not os.path.exists(trace) or not gone:
            with open(os.path.join(folder, "output"), encoding="utf-8", errors="replace") as output:
                sys.exit(f"healthy: {name} was not recorded (status {status}):\n{said}\n{output.read()}")
        diagnosis = subprocess.run([warmq, "diagnose", trace, "--json"], capture_output=True, text=True, check=True)
        shown(name, json.loads(diagnosis.stdout), before, after, gone)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--warmq", default="target/release/warmq")
    arguments.add_argument("--only", default="", help="programs whose names this pattern is found in")
    arguments.add_argument("--keep", help="keep the recordings in this folder")
    asked = arguments.parse_args()
    if os.geteuid() != 0:
        sys.exit("healthy: only root may record and read what the kernel counts: sudo bench/healthy.py")
    if asked.keep:
        os.makedirs(asked.keep, exist_ok=True)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    exits = Exits()
    row(HEAD)
    # Not in a program's folder: programs that run as another user own theirs, and warmq writes into none such.
    with tempfile.TemporaryDirectory(prefix="recordings-") as own:
        for load in LOADS:
            if re.search(asked.only, load[0]):
                play(os.path.abspath(asked.warmq), exits, load, asked.keep or own)


if __name__ == "__main__":
    main()
