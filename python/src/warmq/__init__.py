"""WarmQ in Python: run experiments, look at them in a notebook, sweep them over many machines.

>>> import warmq
>>> rows = warmq.run("spin", machine="tiny-1cpu", time="20ms", warmup="0ms")
>>> rows.column_names[-7:]
['metric', 'value', 'unit', 'low', 'high', 'published', 'calibration']

The command itself comes with this package: `python -m warmq` is `warmq`.
"""

from __future__ import annotations

from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

from ._extras import needed as _needed
from .errors import InputError, MachineError, Problem, RunError, VersionError, WarmqError
from .lab import Run, machines, plan, plan_iter, report, run, scenarios, schedulers
from .report import Report

if TYPE_CHECKING:
    from .sweeps import Sweep, open_sweep, sweep

__version__ = _version("warmq")

__all__ = [
    "InputError",
    "MachineError",
    "Problem",
    "Report",
    "Run",
    "RunError",
    "Sweep",
    "VersionError",
    "WarmqError",
    "machines",
    "open_sweep",
    "plan",
    "plan_iter",
    "report",
    "run",
    "scenarios",
    "schedulers",
    "sweep",
]


def __getattr__(name: str) -> Any:
    # Sweeps need dask.distributed, which takes a second to import and need not be installed.
    if name in ("Sweep", "open_sweep", "sweep"):
        _needed("distributed", "sweep")
        from . import sweeps

        return getattr(sweeps, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
