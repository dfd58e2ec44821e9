"""Real programs on plain and on colored stacks, in pairs that alternate.

usage: colored.py [PAIRS]

Prints medians with quartiles of each side and of the ratio of each pair; above 1, colors gain. The
server and what loads it have a CPU each. It needs cargo, c++, cc, Boost.Fiber, wrk and Redis (Debian:
libboost-fiber-dev, wrk, redis-server, redis-tools); what is missing is said and left out.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
COLOR = os.path.join(ROOT, "live", "color")
SERVER_CPU, LOAD_CPU = "0", "1"
PORT = 18080
SECONDS = 3
# Of the colored side, whatever the library would choose for so many fibers.
COLORS = "32"
# Requests of redis-benchmark in a measurement.
REQUESTS = 200_000


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    with tempfile.TemporaryDirectory() as folder:
        build(folder)
        print(f"{'':<44} {'plain':>28} {'colored':>28} {'gain':>20}")
        for fibers in (64, 256, 1024, 4096):
            run = [os.path.join(folder, "yields"), str(fibers)]
            compare(f"Boost.Fiber, {fibers} fibers, ns a switch", pairs,
                    lambda side: yields(run, side), lower_is_better=True)
        for connections in (256, 500, 2000):
            compare(f"fibers on epoll, {connections} connections, requests/s", pairs,
                    lambda side: server(connections, side))
        library = os.path.join(folder, "libwarmq_color_threads.so")
        for connections in (2000, 4000):
            compare(f"Redis, {connections} connections, requests/s", pairs,
                    lambda side: redis(connections, library if side == "colored" else None))


def build(folder):
    subprocess.run(["cargo", "build", "-q", "--release", "-p", "warmq-color", "--example", "server"],
                   cwd=ROOT, check=True)
    compile_cc("c++", ["-O2", "-Iinclude", "benches/yields.cc", "-lboost_fiber", "-lboost_context"],
               os.path.join(folder, "yields"))
    compile_cc("cc", ["-O2", "-shared", "-fPIC", "include/warmq_color_threads.c", "-ldl"],
               os.path.join(folder, "libwarmq_color_threads.so"))


def compile_cc(compiler, words, output):
    subprocess.run([compiler, "-o", output, *words], cwd=COLOR, check=False)


def compare(what, pairs, measure, lower_is_better=False):
    """A line: `measure` of both sides in turn; who is first changes from pair to pair."""
    plain, colored = [], []
    for pair in range(pairs):
        sides = [("plain", plain), ("colored", colored)]
        for side, values in sides[::-1] if pair % 2 else sides:
            value = measure(side)
            if value is None:
                print(f"{what:<44} left out: a program is missing")
                return
            values.append(value)
    gains = [(one / other if lower_is_better else other / one) for one, other in zip(plain, colored)]
    print(f"{what:<44} {spread(plain, 1):>28} {spread(colored, 1):>28} {spread(gains, 3):>20}", flush=True)


def spread(values, digits):
    """The median, and the quartiles."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def yields(run, side):
    if not os.path.exists(run[0]):
        return None
    run = [*run, "0" if side == "plain" else COLORS]
    done = subprocess.run(["taskset", "-c", SERVER_CPU, *run], capture_output=True, check=True)
    return float(done.stdout)


def server(connections, side):
    """Requests a second of the example `server`, loaded by wrk."""
    if not shutil.which("wrk"):
        return None
    colors = "1" if side == "plain" else COLORS
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    program = os.path.join(target, "release", "examples", "server")
    command = [program, str(PORT), str(connections), colors]
    with started(command):
        done = load(["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", f"http://127.0.0.1:{PORT}/"])
        return float(re.search(r"Requests/sec:\s*([\d.]+)", done).group(1))


def redis(connections, preload):
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        return None
    command = ["redis-server", "--port", str(PORT), "--save", "", "--appendonly", "no",
               "--maxclients", str(connections + 100)]
    with started(command, preload):
        done = load(["redis-benchmark", "-p", str(PORT), "-c", str(connections), "-n", str(REQUESTS),
                     "-t", "get", "-q"])
        return float(re.findall(r"GET: ([\d.]+) requests per second", done)[-1])


def load(command):
    return subprocess.run(["taskset", "-c", LOAD_CPU, *command], capture_output=True, check=True,
                          text=True).stdout


class started:
    """A server that runs meanwhile, with a library before all others if there is one."""

    def __init__(self, command, preload=None):
        preloaded = {"LD_PRELOAD": preload} if preload else {}
        self.server = subprocess.Popen(["taskset", "-c", SERVER_CPU, *command],
                                       stdout=subprocess.DEVNULL, env={**os.environ, **preloaded})

    def __enter__(self):
        time.sleep(0.5)

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait()


if __name__ == "__main__":
    main()
