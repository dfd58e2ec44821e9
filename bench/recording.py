#!/usr/bin/env python3
"""What recording costs loads that people record: their throughput alone, under `warmq watch`, under
`perf sched record` and under bpftrace's runqlat, in turn.

    sudo bench/recording.py [--warmq FILE] [--rounds N] [--loads pipe,hackbench,redis,pgbench]
    sudo bench/recording.py --diagnose    how fast and in how much memory 5 M events are diagnosed

A load or a recorder that is not installed is left out, and that is said. The figure of a round is
work per second; a row has the median of each, in percent of the median alone, and the spread (least
to most) of the rounds alone.
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

RUNQLAT = """
tracepoint:sched:sched_wakeup, tracepoint:sched:sched_wakeup_new { @q[args->pid] = nsecs; }
tracepoint:sched:sched_switch
{
    if (args->prev_state == 0) { @q[args->prev_pid] = nsecs; }
    $ns = @q[args->next_pid];
    if ($ns) { @us = hist((nsecs - $ns) / 1000); }
    delete(@q[args->next_pid]);
}
"""


def said(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def pipe():
    out = said(["perf", "bench", "sched", "pipe", "-l", "150000"])
    return float(re.search(r"([\d.]+)\s+ops/sec", out)[1])


def hackbench():
    began = time.monotonic()
    said(["hackbench", "-p", "-g", "4", "-l", "1500"])
    return 4 * 400 * 1500 / (time.monotonic() - began)


def redis():
    out = said(["redis-benchmark", "-t", "get", "-n", "150000", "-c", "20", "-q"])
    return float(re.findall(r"GET: ([\d.]+) requests per second", out)[-1])


def pgbench():
    out = said(["pgbench", "-S", "-c", "8", "-j", "2", "-T", "3", os.environ.get("PGBENCH_DB", "postgres")])
    return float(re.search(r"tps = ([\d.]+)", out)[1])


LOADS = {
    "pipe": ("perf", pipe),
    "hackbench": ("hackbench", hackbench),
    "redis": ("redis-benchmark", redis),
    "pgbench": ("pgbench", pgbench),
}


def recorders(warmq, folder):
    script = os.path.join(folder, "runqlat.bt")
    with open(script, "w", encoding="utf-8") as file:
        file.write(RUNQLAT)
    all_ = {
        "warmq watch": [warmq, "watch", "--only-record", "--for", "60s", "--out", f"{folder}/it.warmq"],
        "perf sched record": ["perf", "sched", "record", "-o", f"{folder}/perf.data"],
        "runqlat": ["bpftrace", script],
    }
    return {name: command for name, command in all_.items() if shutil.which(command[0])}


def under(command, load):
    """What the load does while a recorder runs."""
    if command is None:
        return load()
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as recorder:
        # Until it records.
        time.sleep(2)
        figure = load()
        recorder.send_signal(signal.SIGINT)
        recorder.wait()
    return figure


EVENTS = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup,sched:sched_stat_runtime"


def took(command):
    """CPU time in s, and the most memory in MB, of a command that prints nothing of interest."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{command} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def diagnosed(warmq, folder):
    """Round trips through a pipe, recorded by perf, diagnosed in each form."""
    data = f"{folder}/perf.data"
    record = ["perf", "record", "-q", "-a", "-m", "4096", "-e", EVENTS, "-o", data]
    said([*record, "perf", "bench", "sched", "pipe", "-l", "800000"])
    forms = {"perf.data": data}
    for form in ["warmq", "pftrace"]:
        said([warmq, "convert", data, f"{folder}/it.{form}"])
        forms[form] = f"{folder}/it.{form}"
    with open(f"{folder}/it.txt", "w", encoding="utf-8") as text:
        subprocess.run(["perf", "script", "-i", data], stdout=text, stderr=subprocess.DEVNULL, check=True)
    forms["perf script"] = f"{folder}/it.txt"
    events = json.loads(said([warmq, "diagnose", data, "--json"]))["recording"]["events"]
    print(f"{sum(events.values()):,} events of perf.data; least CPU time of three, most memory")
    for name, file in forms.items():
        tries = [took([warmq, "diagnose", file]) for _ in range(3)]
        cpu, memory = min(cpu for cpu, _ in tries), max(memory for _, memory in tries)
        print(f"{name:12} {os.path.getsize(file) / 1e6:8.0f} MB {cpu:6.2f} s {memory:6.0f} MB")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--warmq", default="target/release/warmq")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--loads", default=",".join(LOADS))
    arguments.add_argument("--diagnose", action="store_true")
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.diagnose:
            return diagnosed(asked.warmq, folder)
        commands = {"alone": None, **recorders(asked.warmq, folder)}
        print(f"{'load':10}", *(f"{name:>18}" for name in commands), " alone, a second")
        for name in asked.loads.split(","):
            program, load = LOADS[name]
            if not shutil.which(program):
                print(f"{name:10} left out: {program} is not installed", file=sys.stderr)
                continue
            figures = {recorder: [] for recorder in commands}
            for round_ in range(asked.rounds):
                print(f"{name}: round {round_ + 1} of {asked.rounds}", file=sys.stderr)
                for recorder, command in commands.items():
                    figures[recorder].append(under(command, load))
            middle = {recorder: statistics.median(all_) for recorder, all_ in figures.items()}
            row = (f"{100 * middle[recorder] / middle['alone']:16.1f} %" for recorder in commands)
            alone = figures["alone"]
            print(f"{name:10}", *row, f" {middle['alone']:,.0f} ({min(alone):,.0f} to {max(alone):,.0f})")
    return None


if __name__ == "__main__":
    main()
