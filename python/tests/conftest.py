"""An experiment that takes no time, and clusters to sweep it on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

TRIAL = """\
title = "A trial"
machine = "tiny-1cpu"
scheduler = "linux24"
workload = "spin"
seeds = [1, 2]

[run]
warmup = "0ms"
time = "20ms"

[sweep]
tasks = [2, 4, 8]
layout = ["block", "slab"]

[[measure]]
metric = ["cpu_busy_share", "walk_length"]

[[measure]]
name = "more"
of = "walk_length"
relative_to = { tasks = 2 }

[[claim]]
says = "The CPU is busy"
metric = "cpu_busy_share"
at_least = 50
"""
RUNS = 12


def many(tasks: int, bursts: int) -> str:
    """An experiment of so many short runs."""
    return f"""\
title = "Many short runs"
machine = "tiny-1cpu"
scheduler = "linux24"
workload = "spin"
seeds = [1]
[run]
warmup = "0ms"
time = "1ms"
[sweep]
tasks = {list(range(1, tasks + 1))}
burst = {list(range(1000, 1000 + bursts))}
[[measure]]
metric = "walk_length"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own, with `trial.toml` in it, that it runs in."""
    monkeypatch.chdir(tmp_path)
    Path("trial.toml").write_text(TRIAL)
    return tmp_path


@pytest.fixture(scope="session")
def binary() -> str:
    """The command."""
    from warmq._command import binary

    return binary()


@pytest.fixture(scope="session")
def two() -> Iterator[Client]:
    """Two workers, each a process."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def another(tmp_path: Path, binary: str) -> str:
    """A command that works alike, and is another file: as a build of another day would be."""
    path = tmp_path / "other" / "warmq"
    path.parent.mkdir()
    path.write_bytes(Path(binary).read_bytes() + b"\0")
    os.chmod(path, 0o755)
    return str(path)
