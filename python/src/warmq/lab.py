"""Experiments: planned, run, and looked at."""

from __future__ import annotations

import json
import operator
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

import pyarrow as pa

from ._command import call, objects, stream
from ._rows import table_of
from .errors import InputError, Problem
from .report import Report

Experiment = Union[str, "os.PathLike[str]"]
"""The path of an experiment or scenario, or the name of one that comes with WarmQ."""

Setting = Union[str, int, bool]
"""The value of a setting: sizes and times as text, as in a file (`"512KB"`, `"10ms"`)."""

_LISTS = ("world", "scheduler", "kernel", "preempt")
_WORDS = ("machine", "time", "warmup")


def arguments_of(experiment: Experiment, overrides: Mapping[str, Any]) -> list[str]:
    """The words of the command that stand for an experiment and what is changed in it.

    >>> arguments_of("spin", {"seeds": [7], "machine": "tiny-2cpu", "tasks": 4, "settings": {"scheduler.pde": False}})
    ['spin', '--seeds', '7,', '--machine', 'tiny-2cpu', '--set', 'tasks=4', '--set', 'scheduler.pde=false']
    """
    words = [os.fspath(experiment)]
    settings: dict[str, Any] = {}
    for key, value in overrides.items():
        if value is None:
            continue
        if key == "quick":
            words += ["--quick"] if value else []
        elif key == "seeds":
            words += ["--seeds", _seeds(value)]
        elif key == "jobs":
            words += ["--jobs", str(value)]
        elif key in _LISTS:
            words += [f"--{key}", value if isinstance(value, str) else ",".join(value)]
        elif key in _WORDS:
            words += [f"--{key}", os.fspath(value)]
        elif key == "settings":
            settings.update(value)
        else:
            settings[key] = value
    for key, value in settings.items():
        words += ["--set", f"{key}={_value(key, value)}"]
    return words


def _seeds(seeds: Any) -> str:
    try:
        return str(operator.index(seeds))
    except TypeError:
        pass  # A list.
    try:
        return ",".join(str(operator.index(seed)) for seed in seeds) + ","
    except TypeError as why:
        raise InputError([Problem(f"{seeds!r} are no seeds", key="seeds", fix="give a whole number, or a list of them")]) from why


def _value(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return str(operator.index(value))  # Of NumPy's integers, too.
    except TypeError as why:
        fix = "give a whole number, a switch or a text (`'10ms'`); lists are swept in the experiment's file"
        raise InputError([Problem(f"{value!r} is no value of a setting", key=key, fix=fix)]) from why


def run(experiment: Experiment, **overrides: Any) -> pa.Table:
    """Runs an experiment or scenario on all cores, and returns its rows.

    A row is one measure at one point of the sweep: its median over the seeds in `value`, the least and the
    greatest in `low` and `high`, a column for each key that is swept.

    What can be overridden are the options of `warmq run`: `quick`, `seeds` (a number, or a list of them), `jobs`,
    `machine`; for scenarios also `world`, `scheduler`, `kernel`, `preempt`, `time`, `warmup`. Any other name is a
    setting (`processes=512`); one with a dot in it stands in `settings` (`settings={"scheduler.colors": 4}`).

    >>> import warmq
    >>> rows = warmq.run("spin", machine="tiny-2cpu", time="20ms", warmup="0ms", tasks=3)
    >>> shares = {row["metric"]: row["value"] for row in rows.to_pylist()}
    >>> shares["cpu_busy_share"] > 99
    True
    """
    return report(experiment, **overrides).table


def report(experiment: Experiment, **overrides: Any) -> Report:
    """Runs an experiment as [`run`][warmq.run] does, and returns its page, which a notebook shows, with the rows."""
    return report_of(["run", *arguments_of(experiment, overrides)])


def report_of(arguments: Sequence[str], text: Iterator[str] | None = None) -> Report:
    """The report that a command writes."""
    with tempfile.TemporaryDirectory(prefix="warmq-") as folder:
        rows = call([*arguments, "--json", "--out", folder], text=text)
        page = Path(folder, "report.html").read_text(encoding="utf-8")
        return Report(table=table_of(map(json.loads, rows.splitlines())), html=page)


@dataclass(frozen=True)
class Run:
    """A run of a plan."""

    number: int
    """Its place in the plan, counted from 0."""
    digest: str
    """Of all that the run depends on. Within one build of warmq, equal digests are equal runs."""
    experiment: str
    """The id of the experiment."""
    point: dict[str, Any]
    """Where in the sweep."""
    seed: int
    """Its seed."""


def plan(experiment: Experiment, **overrides: Any) -> list[Run]:
    """The runs of an experiment, before any is made. `jobs` changes nothing here.

    >>> import warmq
    >>> [run.seed for run in warmq.plan("spin", machine="tiny-2cpu", seeds=[4, 7])]
    [4, 7]
    """
    return list(plan_iter(experiment, **overrides))


def plan_iter(experiment: Experiment, **overrides: Any) -> Iterator[Run]:
    """The same, one by one: a plan of a million runs takes no memory."""
    overrides.pop("jobs", None)
    for line in stream(["plan", *arguments_of(experiment, overrides), "--json"]):
        yield Run(line["number"], line["run"], line["experiment"], line["point"], line["seed"])


def machines() -> list[dict[str, Any]]:
    """The machines that come with WarmQ, with their caches and costs; units stand in the names of the keys.

    >>> import warmq
    >>> next(it["clock_hz"] for it in warmq.machines() if it["name"] == "ppro-4way")
    200000000.0
    """
    return objects(["machines", "--json"])


def schedulers() -> list[dict[str, Any]]:
    """The schedulers, each with what can be set on it.

    >>> import warmq
    >>> "linux24" in [it["name"] for it in warmq.schedulers()]
    True
    """
    return objects(["schedulers", "--json"])


def scenarios() -> list[dict[str, Any]]:
    """The workloads (scenarios, and programs), each with what can be set on it.

    >>> import warmq
    >>> next(it["what"] for it in warmq.scenarios() if it["name"] == "hog")
    'A task that never sleeps'
    """
    return objects(["scenarios", "--json"])
