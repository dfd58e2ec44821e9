"""The rows of a sweep on disk: a Parquet data set that grows file by file, each whole or not there."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ._files import UNFINISHED, lock, write_whole
from .errors import InputError, Problem, VersionError

# What is held in memory before it is written, and what a sweep that is killed makes again.
MOST_RUNS = 1000
MOST_SECONDS = 5.0

_BEFORE = ["number", "run"]
_AFTER = ["seed", "metric", "value", "unit", "ending", "digest", "cause", "error"]
_TYPES = {"integer": pa.int64(), "flag": pa.bool_(), "text": pa.string()}


class Store:
    """The folder of one experiment's rows, `OUT/experiment=ID`. Held by one sweep at a time."""

    def __init__(self, out: str | os.PathLike[str], summary: dict[str, Any], arguments: Sequence[str]) -> None:
        self.folder = Path(out) / f"experiment={summary['experiment']}"
        self.summary = summary
        self.schema = schema_of(summary)
        self._units = {measure["name"]: measure["unit"] for measure in summary["measures"]}
        self._rows: list[dict[str, Any]] = []
        self._held = 0
        self._written = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = self._locked()
        try:
            self._check({**summary, "arguments": list(arguments)})
        except BaseException:
            self._lock.close()
            raise
        # A byte a run of the plan: 1 if its rows were here when the sweep began.
        self._found = bytearray(summary["runs"])
        self._find()
        self.kept = sum(self._found)
        """Runs whose rows are on disk."""

    @property
    def done(self) -> int:
        """Runs whose rows are on disk, or will be at the next `flush`."""
        return self.kept + self._held

    def found(self, number: int) -> bool:
        """Whether the rows of this run were here when the sweep began."""
        return bool(self._found[number])

    def add(self, line: dict[str, Any]) -> None:
        """Takes the line of a run; it is on disk a few seconds later, or after `flush`."""
        self._rows += rows_of(line, self.summary["keys"], self._units)
        self._held += 1
        if self._held >= MOST_RUNS or time.monotonic() - self._written > MOST_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Writes what is held: first under a name that no reader looks at, then under its own."""
        # They leave memory before they are written: a second Ctrl-C after the file has its name must not lead to
        # another file of the same rows. One before that loses them, and they are made again.
        rows, self._rows = self._rows, []
        held, self._held, self._written = self._held, 0, time.monotonic()
        if rows:
            name = f"{rows[0]['number']:09}-{uuid.uuid4().hex[:8]}.parquet"
            table = pa.Table.from_pylist(rows, schema=self.schema)
            write_whole(self.folder / name, lambda file: pq.write_table(table, file, compression="zstd"))
        self.kept += held

    def close(self) -> None:
        """Writes the rest, and lets others write."""
        try:
            self.flush()
        finally:
            self._lock.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _locked(self) -> IO[bytes]:
        try:
            return os.fdopen(lock(self.folder / "_lock"), "rb")
        except BlockingIOError as why:
            said = f"another sweep writes here ({why.strerror})"
            raise InputError([Problem(said, str(self.folder), fix="wait for it, or choose another `out`")]) from why

    def _check(self, manifest: dict[str, Any]) -> None:
        """A folder keeps the rows of one plan, made by one build."""
        path = self.folder / "_plan.json"
        if not path.exists():
            if any(self.folder.glob("*.parquet")):
                what = "there are rows of no sweep here"
                raise InputError([Problem(what, str(self.folder), fix="choose another `out`")])
            text = json.dumps(manifest, indent=1).encode()
            write_whole(path, lambda file: file.write(text))
            return
        begun = json.loads(path.read_text(encoding="utf-8"))
        for key, what in [("plan", "another plan (its settings, points, seeds or files differ)"), ("build", "another build of warmq")]:
            if begun[key] != manifest[key]:
                said = f"the sweep in this folder is of {what}: {begun['version']}, {key} {begun[key]}; here {manifest['version']}, {key} {manifest[key]}"
                raise VersionError([Problem(said, str(self.folder), key=key, fix="choose another `out`, or remove the folder")])

    def _find(self) -> None:
        for unfinished in self.folder.glob(f".*{UNFINISHED}"):
            unfinished.unlink()
        files = [str(file) for file in sorted(self.folder.glob("*.parquet"))]
        if files:
            for batch in ds.dataset(files, schema=self.schema).to_batches(columns=["number"]):
                for number in batch.column("number").unique().to_pylist():
                    self._found[number] = 1


def schema_of(summary: dict[str, Any]) -> pa.Schema:
    """The columns of a sweep: a column for each key that is swept, of one type."""
    for key in summary["keys"]:
        if key["name"] in [*_BEFORE, *_AFTER, "experiment"]:
            raise InputError([Problem("a column of every sweep has this name", key=f"sweep.{key['name']}", fix=f"sweep it as `workload.{key['name']}` (or scheduler., machine.)")])
    text = pa.string()
    fields = [("number", pa.int64()), ("run", text)]
    fields += [(key["name"], _TYPES[key["type"]]) for key in summary["keys"]]
    fields += [("seed", pa.uint64()), ("metric", text), ("value", pa.float64()), ("unit", text)]
    fields += [(name, text) for name in ("ending", "digest", "cause", "error")]
    return pa.schema(fields)


def rows_of(line: dict[str, Any], keys: Sequence[dict[str, str]], units: dict[str, str]) -> list[dict[str, Any]]:
    """The rows of a run: one a figure; one without a figure if the run gave none.

    >>> line = {"number": 3, "run": "0f", "point": {"cpus": 2}, "seed": 1, "error": {"cause": "stalled", "what": "so"}}
    >>> [(row["cpus"], row["metric"], row["error"]) for row in rows_of(line, [{"name": "cpus", "type": "integer"}], {})]
    [(2, None, 'so')]
    """
    error = line.get("error") or {}
    point = {key["name"]: _cell(line["point"].get(key["name"]), key["type"]) for key in keys}
    common = {
        "number": line["number"],
        "run": line["run"],
        **point,
        "seed": line["seed"],
        "ending": line.get("ending"),
        "digest": line.get("digest"),
        "cause": error.get("cause"),
        "error": error.get("what"),
    }
    figures: dict[str, float | None] = line.get("figures") or {}
    if not figures:
        return [{**common, "metric": None, "value": None, "unit": None}]
    return [{**common, "metric": name, "value": value, "unit": units.get(name)} for name, value in figures.items()]


def _cell(value: Any, kind: str) -> Any:
    if kind != "text" or value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def lines_of(table: pa.Table, build: str) -> Iterator[str]:
    """Rows as the lines of runs that `build` made; those of a run stand together."""
    line: dict[str, Any] = {}
    for batch in table.select(["run", "metric", "value", "ending", "digest", "cause", "error"]).to_batches():
        for row in batch.to_pylist():
            if row["run"] != line.get("run"):
                if line:
                    yield json.dumps(line) + "\n"
                line = {"run": row["run"], "build": build, "ending": row["ending"], "digest": row["digest"], "figures": {}}
                if row["error"] is not None:
                    line["error"] = {"cause": row["cause"], "what": row["error"]}
            if row["metric"] is not None:
                line["figures"][row["metric"]] = row["value"]
    if line:
        yield json.dumps(line) + "\n"
