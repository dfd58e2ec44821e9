#!/usr/bin/env python3
"""How well sweeps use workers, what Dask costs a run, and how much memory a large sweep takes.

    python bench/sweeps.py        (`make bench` does) prints a line a figure, with what is wanted; exits with 1 if one is missed

Needs the package with `[sweep,duckdb]` and psutil; the command should be a release build (WARMQ_BINARY names another).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import warmq
from warmq._command import binary
from warmq.sweeps import local_client

MISSED: list[str] = []


def experiment(name: str, tasks: int, bursts: int, span: str, seeds: int = 1) -> str:
    """The file of an experiment of `tasks` times `bursts` times `seeds` runs, each of a simulated time."""
    Path(name).write_text(
        f'title = "Bench"\nmachine = "ppro-4way"\nscheduler = "linux24"\nworkload = "spin"\nseeds = {list(range(1, seeds + 1))}\n'
        f'[run]\nwarmup = "0ms"\ntime = "{span}"\n[sweep]\ntasks = {list(range(1, tasks + 1))}\n'
        f'burst = {list(range(100000, 100000 + bursts))}\n[[measure]]\nmetric = "walk_length"\n'
    )
    return name


def report(what: str, value: float, unit: str, wanted: str, met: bool) -> None:
    print(f"{what}: {value:.2f} {unit} (wanted: {wanted}){'' if met else '  MISSED'}", flush=True)
    if not met:
        MISSED.append(what)


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class Memory:
    """The most memory that this process and all that it started had, sampled."""

    def __init__(self) -> None:
        self.most, self._ended = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        me = psutil.Process()
        while not self._ended.wait(0.2):
            resident = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    resident += process.memory_info().rss
                except psutil.NoSuchProcess:
                    pass
            self.most = max(self.most, resident)


def on_workers(name: str, workers: int, out: str) -> float:
    with local_client(workers) as client:
        return seconds(lambda: warmq.sweep(name, client, out, progress=False))


def without_dask(name: str, processes: int) -> float:
    """All runs of `name`, dealt to so many commands: what the machine has to give at this moment."""
    dealt: list[list[str]] = [[] for _ in range(processes)]
    for run in warmq.plan(name):
        dealt[run.number % processes].append(str(run.number))

    def work() -> None:
        words = [[binary(), "run", name, "--jobs", "1", "--only", ",".join(numbers)] for numbers in dealt]
        for process in [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in words]:
            process.wait()

    return seconds(work)


def scaling() -> None:
    """Alternately, three times, the best of each: the machine may have other work. Without Dask beside it, as that work
    takes from both. Half a minute each on one worker, beside which the first runs and the last do not count."""
    name = experiment("scaling.toml", 16, 1, "60s", seeds=20)
    runs = len(warmq.plan(name))
    times = [
        (on_workers(name, 1, f"one-{turn}"), on_workers(name, 2, f"two-{turn}"), without_dask(name, 1), without_dask(name, 2))
        for turn in range(3)
    ]
    one, two, alone, both = (min(column) for column in zip(*times))
    print(f"{runs} runs of {alone / runs * 1000:.0f} ms: {one:.2f} s on 1 worker, {two:.2f} s on 2; {alone:.2f} and {both:.2f} s without Dask")
    print(f"2 commands without Dask against 1: {alone / both:.2f} times")
    report("2 workers against 1", one / two, "times", "at least 1.8", one / two >= 1.8)


def cost_of_dask() -> None:
    """A sweep on one worker, against the same command answering the same runs on a pipe."""
    name = experiment("cost.toml", 20, 100, "1ms")
    asked = "".join(f"{run.number}:{run.digest}\n" for run in warmq.plan(name)).encode()
    alone = seconds(lambda: subprocess.run([binary(), "run", name, "--only", "-"], input=asked, stdout=subprocess.DEVNULL, check=True))
    cost = (on_workers(name, 1, "cost") - alone) / 2000 * 1000
    report("cost of Dask, plan and Parquet a run", cost, "ms", "less than 5", cost < 5)


def large() -> None:
    name = experiment("large.toml", 20, 1000, "1ms")
    with Memory() as memory:
        took = seconds(lambda: warmq.sweep(name, out="large", progress=False))
    numbers = warmq.open_sweep("large/experiment=large").sql("select count(*), count(distinct run) from sweep").fetchall()
    print(f"20,000 runs in {took:.0f} s; rows and runs: {numbers[0]}")
    report("memory of a sweep of 20,000 runs", memory.most / 2**20, "MB", "less than 2,048", memory.most < 2 << 30 and numbers == [(20000, 20000)])


def planning() -> None:
    name = experiment("plan.toml", 1000, 1000, "1ms")
    with subprocess.Popen([binary(), "plan", name, "--json"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        began = time.perf_counter()
        process.stdout.readline()
        first = time.perf_counter() - began
        process.stdout.read(1 << 26)
        resident = psutil.Process(process.pid).memory_info().rss
        left = len(process.stdout.read())
        took = time.perf_counter() - began
    print(f"1,000,000 points are planned in {took:.1f} s")
    report("first line of 1,000,000 points after", first * 1000, "ms", "less than 1,000", first < 1 and left > 0)
    report("memory of the plan of 1,000,000 points", resident / 2**20, "MB", "less than 100", resident < 100 << 20)


def main() -> int:
    import os

    print(f"warmq {warmq.__version__}: {binary()}")
    with tempfile.TemporaryDirectory(prefix="warmq-bench-") as folder:
        os.chdir(folder)
        for measure in (planning, cost_of_dask, large, scaling):
            measure()
        os.chdir("/")
    return 1 if MISSED else 0


if __name__ == "__main__":
    sys.exit(main())
