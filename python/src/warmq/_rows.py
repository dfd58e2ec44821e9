"""The rows that the command prints, as a table: a column for each key that is swept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

_AFTER = [
    ("metric", pa.string()),
    ("value", pa.float64()),
    ("unit", pa.string()),
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("published", pa.float64()),
    ("calibration", pa.bool_()),
]


def table_of(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """The experiment, the keys that are swept in the order in which they first appear, and the figures.

    >>> row = dict(metric="time", value=1.5, unit="ns", low=1, high=2, published=None, calibration=False)
    >>> rows = [{"experiment": "trial", "point": {"tasks": tasks}, **row} for tasks in (2, 4)]
    >>> table_of(rows).select(["experiment", "tasks", "value", "published"]).to_pylist()[1]
    {'experiment': 'trial', 'tasks': 4, 'value': 1.5, 'published': None}
    """
    rows = list(rows)
    keys = dict.fromkeys(key for row in rows for key in row["point"])
    columns = {"experiment": pa.array([row["experiment"] for row in rows], pa.string())}
    columns |= {key: column([row["point"].get(key) for row in rows]) for key in keys}
    columns |= {name: pa.array([row[name] for row in rows], kind) for name, kind in _AFTER}
    return pa.table(columns)


def column(values: Sequence[Any]) -> pa.Array:
    """Integers, numbers, flags or text: the narrowest type that holds all that is there.

    >>> [str(column(values).type) for values in ([1, None], [1, 0.5], [True, None], [1, True], ["a", 2])]
    ['int64', 'double', 'bool', 'string', 'string']
    """
    kinds = {type(value) for value in values if value is not None}
    for kind, numbers in ((pa.int64(), {int}), (pa.float64(), {int, float}), (pa.bool_(), {bool})):
        if kinds <= numbers:
            return pa.array(values, kind)
    return pa.array([value if value is None or isinstance(value, str) else json.dumps(value) for value in values])
