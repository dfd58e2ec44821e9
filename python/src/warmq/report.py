"""A finished report: its rows, and its page for a notebook."""

from __future__ import annotations

import html as _html
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from ._extras import needed
from ._files import write_whole

if TYPE_CHECKING:
    import os

    import pandas
    import polars


@dataclass(frozen=True)
class Report:
    """What an experiment gave. In a notebook it shows its page: tables, plots, claims."""

    table: pa.Table
    """The rows, as [`run`][warmq.run] returns them."""
    html: str
    """The page: one file that needs no network, and is whole without its script."""

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a data frame of pandas."""
        return to_pandas(self.table)

    def to_polars(self) -> polars.DataFrame:
        """The rows as a data frame of polars."""
        return to_polars(self.table)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page into a file."""
        page = Path(path)
        write_whole(page, lambda file: file.write(self.html.encode()))
        return page

    def _repr_html_(self) -> str:
        # A frame keeps the styles of the page and of the notebook apart; nothing in it may run.
        page = _html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" sandbox="" style="width: 100%; height: 40em; border: 0"></iframe>'

    def __repr__(self) -> str:
        return f"<warmq.Report of {self.table.num_rows} rows>"


def to_pandas(table: pa.Table) -> pandas.DataFrame:
    """A table as a data frame of pandas."""
    needed("pandas", "pandas")
    return table.to_pandas()


def to_polars(table: pa.Table) -> polars.DataFrame:
    """A table as a data frame of polars."""
    frame: polars.DataFrame = needed("polars", "polars").from_arrow(table)
    return frame
