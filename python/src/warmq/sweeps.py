"""Sweeps on dask.distributed: a run of the plan is a task, and its rows go into a Parquet data set."""

from __future__ import annotations

import itertools
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import pyarrow as pa
import pyarrow.dataset as ds
from distributed import Client, KilledWorker, LocalCluster, as_completed

from ._command import objects
from ._extras import needed
from ._interrupt import Interrupt
from ._progress import Progress
from ._store import Store, lines_of, schema_of
from ._worker import Lab, Spec, check, shipped, take
from .errors import InputError, Problem, VersionError, WarmqError
from .lab import Experiment, Run, arguments_of, plan_iter, report_of
from .report import Report, to_pandas, to_polars

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

# Runs that Dask knows of at a time: enough to keep every thread at work, few enough for any plan.
_LEAST_AHEAD = 256
_AHEAD_PER_THREAD = 16
# A run is lost with its command or its worker (out of memory, a node that goes away), and is made again so often.
_RETRIES = 3
# Seconds after which Dask knows that a worker is gone whose connections were closed.
_TIME_TO_BE_MISSED = 0.5


@dataclass(frozen=True)
class Sweep:
    """The rows of a sweep, on disk."""

    folder: Path
    """The Parquet files: `OUT/experiment=ID`."""
    summary: dict[str, Any]
    """What was planned, as `warmq plan --summary` says it."""

    def dataset(self) -> ds.Dataset:
        """The rows, to be filtered before they are loaded."""
        files = [str(file) for file in sorted(self.folder.glob("*.parquet"))]
        return ds.dataset(files, schema=schema_of(self.summary))

    def table(self) -> pa.Table:
        """A row a run and figure, in the order of the plan: the same on any machines, bit for bit."""
        # The rows of a run stand together and in order; the sort keeps that only if it knows where they stood.
        table = self.dataset().to_table()
        place = pa.array(range(table.num_rows), pa.int64())
        table = table.append_column("_place", place).sort_by([("number", "ascending"), ("_place", "ascending")])
        return table.drop_columns(["_place"]).combine_chunks()

    def report(self) -> Report:
        """Page and rows as [`report`][warmq.report] makes them, of these runs: measures over others, claims, plots."""
        words = ["run", *self.summary["arguments"], "--collect", "-"]
        return report_of(words, text=lines_of(self.table(), self.summary["build"]))

    def rows(self) -> pa.Table:
        """The rows that [`run`][warmq.run] returns for the same experiment: medians over the seeds."""
        return self.report().table

    def failures(self) -> pa.Table:
        """The runs that gave no measurement."""
        return self.dataset().to_table(filter=ds.field("error").is_valid())

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """Asks DuckDB, which reads what it needs of the files; the rows are the table `sweep`."""
        connection = needed("duckdb", "duckdb").connect()
        files = str(self.folder / "*.parquet").replace("'", "''")
        connection.execute(f"create view sweep as select * from read_parquet('{files}')")
        answer: duckdb.DuckDBPyRelation = connection.sql(query)
        return answer

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a data frame of pandas."""
        return to_pandas(self.table())

    def to_polars(self) -> polars.DataFrame:
        """The rows as a data frame of polars."""
        return to_polars(self.table())

    def _repr_html_(self) -> str | None:
        try:
            return to_pandas(self.dataset().head(20))._repr_html_()  # type: ignore[no-any-return]
        except ImportError:
            return None  # A notebook shows the `repr` then.


def open_sweep(folder: str | os.PathLike[str]) -> Sweep:
    """The sweep in `OUT/experiment=ID`, finished or not."""
    path = Path(folder)
    try:
        manifest = json.loads((path / "_plan.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as why:
        problem = Problem(f"there is no sweep here: {why}", str(path), fix="give OUT/experiment=ID")
        raise InputError([problem]) from why
    return Sweep(path, manifest)


def sweep(
    experiment: Experiment,
    client: Client | None = None,
    out: str | os.PathLike[str] = "sweep/",
    *,
    progress: bool = True,
    **overrides: Any,
) -> Sweep:
    """Makes every run of an experiment on the workers of `client` (without one: on all cores of this machine).

    A run is one task. Rows are written into `out` every few seconds; a sweep that was cut off goes on where it
    stopped when it is called again. `overrides` are those of [`run`][warmq.run] but for `jobs`: the workers' threads
    say how many runs are made at a time.

    >>> import tempfile, warmq
    >>> with tempfile.TemporaryDirectory() as out:
    ...     made = warmq.sweep("spin", out=out, progress=False, machine="tiny-1cpu", time="20ms", seeds=4)
    ...     made.sql("select count(distinct run) from sweep").fetchall()
    [(4,)]
    """
    if overrides.get("jobs") is not None:
        raise InputError([Problem("a sweep makes as many runs at a time as its workers have threads", key="jobs", fix="leave it out, or give a client of other workers")])
    words = arguments_of(experiment, overrides)
    (summary,) = objects(["plan", *words, "--summary"])
    _refuse_real_worlds(summary)
    spec = _spec(words, summary)
    with Store(out, summary, words) as store:
        shown = Progress(store.done, summary["runs"], progress)
        if store.done:
            shown.say(f"{store.done} of {summary['runs']} runs are in {store.folder} already")
        todo = (run for run in plan_iter(experiment, **overrides) if not store.found(run.number))
        first = next(todo, None)
        if first is not None:
            _make(itertools.chain([first], todo), client, spec, store, shown)
    return open_sweep(store.folder)


def _refuse_real_worlds(summary: dict[str, Any]) -> None:
    real = [world for world in summary["worlds"] if world != "lab"]
    if real:
        problem = Problem(f"a sweep simulates, and does not play in {', '.join(real)}", key="world", fix="use warmq.run")
        raise InputError([problem])


def _spec(words: list[str], summary: dict[str, Any]) -> Spec:
    files = shipped(summary["files"])
    name = words[0]
    # The path of a scenario is the name of its workload, which is part of the plan: it is the same on all workers. An
    # experiment's is not, so that its file may lie anywhere.
    if name not in summary["files"] and os.path.isfile(name):
        here = f".experiment/{os.path.basename(name)}"
        files[here] = Path(name).read_bytes()
        words = [here, *words[1:]]
    return Spec(words, summary["version"], summary["build"], summary["plan"], files)


def _make(todo: Iterator[Run], client: Client | None, spec: Spec, store: Store, shown: Progress) -> None:
    with _connected(client) as connected:
        shown.say(f"dashboard: {connected.dashboard_link}")
        with _prepared(connected, spec):
            try:
                with Interrupt() as interrupt:
                    _drive(todo, connected, spec, store, shown, interrupt)
            except KeyboardInterrupt:
                store.flush()
                shown.end()
                shown.say(f"interrupted; {store.kept} runs are kept in {store.folder}: the same call goes on from there")
                raise
            shown.end()


@contextmanager
def _connected(client: Client | None) -> Iterator[Client]:
    if client is not None:
        yield client
        return
    with local_client(len(os.sched_getaffinity(0))) as local:
        yield local


# What Dask does by the clock, whether or not anything happens, took a tenth of a core of two workers with its usual settings:
# it samples what each worker's threads are at (they wait for the command), and looks at itself every 20 ms.
_QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "200ms",
    "distributed.worker.memory.monitor-interval": "1s",
}


@contextmanager
def local_client(workers: int) -> Iterator[Client]:
    """A client of so many workers on this machine, each of which makes one run at a time."""
    link = {"distributed.dashboard.link": "http://127.0.0.1:{port}/status"}
    with (
        dask.config.set(link | _QUIET),
        # Threads are enough: each waits for a command of its own, which does the work.
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as local,
    ):
        yield local


@contextmanager
def _prepared(client: Client, spec: Spec) -> Iterator[None]:
    """Every worker, now or later, gets the files and is checked."""
    try:
        _whoever_dies(lambda: client.register_plugin(Lab(spec)))
    except Exception as why:
        if "No module named 'warmq" in str(why):
            problem = Problem("a worker has no warmq", fix="install the same wheel of warmq on every worker")
            raise VersionError([problem]) from why
        raise
    try:
        _whoever_dies(lambda: client.run(check, spec.name))
        yield
    finally:
        try:
            client.unregister_worker_plugin(spec.name)
        except Exception:  # The cluster may be gone; then its commands are gone, too.
            pass


def _whoever_dies(ask_all: Callable[[], object]) -> None:
    """Asks all workers, and again where one died meanwhile: Dask breaks off for all of them then."""
    for _ in range(_RETRIES):
        try:
            ask_all()
            return
        except OSError:  # Dask's CommClosedError is one; what workers answer is not.
            time.sleep(_TIME_TO_BE_MISSED)
    ask_all()


def _drive(todo: Iterator[Run], client: Client, spec: Spec, store: Store, shown: Progress, interrupt: Interrupt) -> None:
    """Keeps Dask a few hundred runs ahead, and takes results as they come."""
    flying = as_completed(with_results=True, raise_errors=False)
    runs = _Remembered(todo)
    _submit(runs, _ahead(client), client, spec, flying)
    while flying.count() > 0:
        with interrupt.while_waiting():
            batch = flying.next_batch(block=True)
        for future, result in batch:
            if future.status == "finished":
                runs.done(future.key)
                store.add(json.loads(result))
            elif future.status == "error" or not runs.again(future.key):
                raise _error(future, result)
        shown.see(store.done)
        room = _ahead(client) - flying.count()
        _submit(runs, max(room, runs.lost()), client, spec, flying)


class _Remembered:
    """Runs in their order, and those again whose results were lost with a worker before they arrived here."""

    def __init__(self, todo: Iterator[Run]) -> None:
        self._todo = todo
        self._flying: dict[str, tuple[Run, int]] = {}
        self._lost: list[tuple[Run, int]] = []

    def again(self, key: str) -> bool:
        """The run of `key` was lost: it comes again, unless it did so too often. Returns whether it does."""
        run, times = self._flying.pop(key)
        if times == _RETRIES:
            return False
        self._lost.append((run, times + 1))
        return True

    def done(self, key: str) -> None:
        del self._flying[key]

    def lost(self) -> int:
        return len(self._lost)

    def take(self, most: int) -> dict[str, Run]:
        """The next runs by the keys of their tasks; one that comes again has another, as Dask remembers the first."""
        again, self._lost = self._lost[:most], self._lost[most:]
        new = [(run, 0) for run in itertools.islice(self._todo, most - len(again))]
        taken = {f"warmq-{run.digest}" + (f"-{times}" if times else ""): (run, times) for run, times in again + new}
        self._flying.update(taken)
        return {key: run for key, (run, _) in taken.items()}


def _ahead(client: Client) -> int:
    threads = sum(client.nthreads().values())
    return max(_LEAST_AHEAD, _AHEAD_PER_THREAD * int(threads))


def _submit(todo: _Remembered, most: int, client: Client, spec: Spec, flying: Any) -> None:
    keyed = todo.take(most)
    if not keyed:
        return
    runs = list(keyed.values())
    futures = client.map(
        take,
        [spec.name] * len(runs),
        [run.number for run in runs],
        [run.digest for run in runs],
        key=list(keyed),
        retries=_RETRIES,
    )
    flying.update(futures)


def _error(future: Any, result: Any) -> BaseException:
    """What a task raised; `result` is that, with its traceback, or nothing."""
    error = result[1] if isinstance(result, tuple) else result
    if isinstance(error, KilledWorker):
        problem = Problem(f"{future.key} ended {_RETRIES + 1} workers, one after another", fix="give workers more memory, or look at their logs")
        return WarmqError([problem])
    if isinstance(error, BaseException):
        return error
    return WarmqError([Problem(f"{future.key} was {future.status}", fix="call it again: it goes on from what was kept")])
