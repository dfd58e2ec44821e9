"""What the documents show works: the examples of docs/sweeps.md, and the notebook."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import nbclient
import nbformat
import pytest
import warmq

DOCS = Path(__file__).resolve().parents[2] / "docs"


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language} tested\n(.*?)^```", (DOCS / "sweeps.md").read_text(), re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_shell_give_the_rows_of_one_run(here: Path) -> None:
    (text,) = examples("sh")
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    subprocess.run(["bash", "-euo", "pipefail", "-c", text], env={**os.environ, "PATH": path}, check=True)
    import pyarrow.parquet as pq

    assert pq.read_table("report/rows.parquet").equals(warmq.run("trial.toml"))


def test_the_examples_in_python_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = examples("python")
    assert len(texts) == 3
    scope: dict[str, object] = {}
    for text in texts:
        exec(text, scope)
    assert "did you mean `colors`" in capsys.readouterr().out


def test_the_notebook_runs(here: Path) -> None:
    notebook = nbformat.read(DOCS / "tour.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "the notebook is kept without outputs"
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(here)}}).execute()
    shown = [str(output.get("data", {})) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("<iframe srcdoc=" in text for text in shown), "a report shows itself"
