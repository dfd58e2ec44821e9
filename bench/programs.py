"""The player beside the programs whose scenarios it plays: work a second, unrecorded, in turn.

usage: programs.py WARMQ [TRIES [PATTERN]]

WARMQ is the release build of the command. Each pair is run TRIES times (5), one after the other;
with PATTERN, a regular expression, those pairs whose names it is found in. A program that is not
installed is left out, and so is TCP where the kernel's congestion control is one that paces: the
player chooses one that does not.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SCENARIOS = os.path.join(os.path.dirname(HERE), "scenarios")
# How far the player may be from the program.
WITHIN = 0.15
# hackbench: a group of 20 senders passes 20 * 20 * loops messages.
LOOPS = 1000
SECONDS = 2


def hackbench(groups, connection):
    words = ["hackbench", *{"pipe": ["--pipe"], "inet": ["--inet"], "unix": []}[connection]]
    words += ["-f", "20", "-l", str(LOOPS), "-g", str(groups)]
    messages = 400 * LOOPS * groups
    played = {"groups": groups, "loops": LOOPS, "connection": connection}
    # It ends by itself.
    ours = [os.path.join(SCENARIOS, "hackbench.toml"), "--warmup", "0ms", "--time", "120s"]
    for key, value in played.items():
        ours += ["--set", f"{key}={value}"]
    name = f"hackbench, {connection}, groups {groups}"
    return name, words, lambda said: messages / number(r"Time: ([\d.]+)", said), ours


def messaging(connection):
    options = {"pipe": ["-p"], "unix": []}[connection]
    words = ["perf", "bench", "sched", "messaging", *options, "-g", "4", "-l", str(LOOPS)]
    _, _, _, ours = hackbench(4, connection)
    total = r"Total time: ([\d.]+)"
    messages = 400 * LOOPS * 4
    return " ".join(words[:4] + options), words, lambda said: messages / number(total, said), ours


def stressor(name):
    """One of stress-ng's stressors, which counts operations of its own."""
    words = ["stress-ng", f"--{name}", "1", "-t", str(SECONDS), "--metrics-brief"]
    count = rf"\] {name} +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+)"
    ours = of_scenario(os.path.join(HERE, "programs", f"stress-{name}.toml"))
    return f"stress-ng --{name}", words, lambda said: number(count, said), ours


def of_scenario(file):
    return [file, "--warmup", "200ms", "--time", f"{SECONDS}s"]


def pairs():
    """Name, command, its work a second by what it printed, and the scenario with its options."""
    for connection in ["unix", "pipe", "inet"]:
        for groups in [1, 4, 10]:
            yield hackbench(groups, connection)
    for connection in ["unix", "pipe"]:
        yield messaging(connection)
    yield (
        "perf bench sched pipe",
        ["perf", "bench", "sched", "pipe", "-l", "200000"],
        lambda said: number(r"(\d+) ops/sec", said),
        of_scenario(os.path.join(SCENARIOS, "ping-pong.toml")),
    )
    cycles = 5000 * SECONDS
    yield (
        "cyclictest, each 200 us",
        ["cyclictest", "-q", "-t1", "-i200", "-l", str(cycles)],
        # It prints no time.
        lambda said: cycles / number(r"took ([\d.]+)", said),
        of_scenario(os.path.join(HERE, "programs", "cyclictest.toml")),
    )
    yield stressor("pipe")
    yield stressor("futex")
    yield (
        "sysbench threads",
        ["sysbench", "threads", "--threads=4", f"--time={SECONDS}", "run"],
        lambda said: number(r"number of events: +(\d+)", said) / number(r"total time: +([\d.]+)", said),
        of_scenario(os.path.join(HERE, "programs", "sysbench-threads.toml")),
    )


def number(pattern, said):
    found = re.search(pattern, said)
    if found is None:
        sys.exit(f"programs: nothing like {pattern} in\n{said}")
    return float(found[1])


def by_program(words):
    """What the program printed, with the time that it took."""
    script = 'import subprocess, sys, time; began = time.monotonic(); code = subprocess.call(sys.argv[1:]); '
    script += 'print("took", time.monotonic() - began); sys.exit(code)'
    done = subprocess.run(
        [sys.executable, "-c", script, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} failed:\n{done.stdout}")
    return done.stdout


def by_player(warmq, ours):
    words = [warmq, "run", *ours, "--world", "host", "--seeds", "1", "--set", "record=false", "--json"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} failed:\n{done.stderr}")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    (work,) = [row["value"] for row in rows if row.get("metric") == "work_per_second"]
    return work


def paces():
    with open("/proc/sys/net/ipv4/tcp_congestion_control", encoding="ascii") as file:
        return file.read().strip() == "bbr"


def main():
    warmq = os.path.abspath(sys.argv[1])
    tries = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    chosen = sys.argv[3] if len(sys.argv) > 3 else ""
    print(f"medians of {tries} runs a side, in turn; work a second; ! is more than 15 % off")
    print(f"{'':<28} {'program':>12} {'player':>12} {'ratio':>6}")
    for name, words, work, ours in (pair for pair in pairs() if re.search(chosen, pair[0])):
        if shutil.which(words[0]) is None:
            print(f"{name:<28} {words[0]} is not installed")
            continue
        if "--inet" in words and paces():
            print(f"{name:<28} needs a congestion control that does not pace")
            continue
        made = [(work(by_program(words)), by_player(warmq, ours)) for _ in range(tries)]
        real, played = (statistics.median(side) for side in zip(*made))
        ratio = played / real
        off = " " if abs(ratio - 1) <= WITHIN else "!"
        print(f"{name:<28} {real:>12,.0f} {played:>12,.0f} {ratio:>6.2f} {off}", flush=True)


main()
