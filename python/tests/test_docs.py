"""What the documents show works: the examples of docs/sweeps.md, and the notebook."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import duckdb
import nbclient
import nbformat
import pyarrow.csv as pc
import pytest
import warmq
from conftest import TRIAL
from ssh_server import node

DOCS = Path(__file__).resolve().parents[2] / "docs"


def examples(kind: str) -> list[str]:
    """The blocks of docs/sweeps.md that are marked as `kind`: a language, `tested`, and a name if there are several."""
    return re.findall(rf"^```{kind}\n(.*?)^```", (DOCS / "sweeps.md").read_text(), re.MULTILINE | re.DOTALL)


def example(kind: str) -> str:
    (text,) = examples(kind)
    return text


def shell(text: str, **environment: str) -> None:
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    subprocess.run(["bash", "-euo", "pipefail", "-c", text], env={**os.environ, "PATH": path, **environment}, check=True)


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


def assert_the_report_is_that_of_one_run() -> None:
    rows = warmq.run("trial.toml")
    assert pc.read_csv("report/rows.csv").cast(rows.schema).equals(rows)


def test_xargs(here: Path) -> None:
    for part in ("plan", "xargs", "collect"):
        shell(example(f"sh tested {part}"))
    assert_the_report_is_that_of_one_run()


@needs("parallel")
def test_gnu_parallel(here: Path) -> None:
    for part in ("plan", "parallel"):
        shell(example(f"sh tested {part}"))
    assert_the_report_is_that_of_one_run()


def test_the_script_of_a_slurm_array(here: Path) -> None:
    shell(example("sh tested plan"))
    for task in range(3):
        shell(example("sh tested slurm"), SLURM_ARRAY_TASK_ID=str(task))
    shell(example("sh tested collect"))
    assert_the_report_is_that_of_one_run()


@needs("snakemake")
def test_snakemake_takes_a_run_without_a_measurement_as_a_result(here: Path) -> None:
    Path("trial.toml").write_text(TRIAL.replace("[2, 4, 8]", "[2, 4, 90000]"))
    shell(example("sh tested plan"))
    Path("Snakefile").write_text(example("python tested snakemake"))
    shell("snakemake --cores 2 --quiet")
    assert set(pc.read_csv("report/rows.csv")["tasks"].to_pylist()) == {2, 4, 90000}


# What SLURM's commands do, on this machine and at once. Dask deletes the script when `sbatch` returns.
SBATCH = """#!/bin/sh
cp "$1" job.sh
setsid bash job.sh > job.log 2>&1 &
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
kill -- "-$1"
"""


def test_a_cluster_of_slurm(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        Path(name).write_text(text)
        Path(name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{here}:{os.environ['PATH']}")
    text = example("python tested slurm")
    for there, here_is in (('cores=32, processes=32, memory="64GB"', 'cores=2, processes=2, memory="2GB"'), ("jobs=10", "jobs=1")):
        assert there in text
        text = text.replace(there, here_is)
    scope: dict[str, object] = {"warmq": warmq}
    try:
        exec(text, scope)
    finally:
        if "cluster" in scope:
            scope["cluster"].close()  # type: ignore[attr-defined]
    assert warmq.open_sweep("sweep/experiment=trial").rows().equals(warmq.run("trial.toml"))


# Dask's, when it ends such a cluster.
@pytest.mark.filterwarnings("ignore:coroutine 'Event.wait' was never awaited")
def test_a_cluster_by_ssh(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here))
    text = example("python tested ssh")
    assert '"n_workers": 16' in text
    scope: dict[str, object] = {"warmq": warmq}
    with node(here, ["head", "node1", "node2"]):
        try:
            exec(text.replace('"n_workers": 16', '"n_workers": 1'), scope)
        finally:
            if "cluster" in scope:
                scope["cluster"].close()  # type: ignore[attr-defined]
    assert warmq.open_sweep("sweep/experiment=trial").rows().equals(warmq.run("trial.toml"))


def test_the_examples_in_python_and_sql(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = examples("python tested")
    assert len(texts) == 3
    scope: dict[str, object] = {}
    for text in texts:
        exec(text, scope)
    assert "did you mean `colors`" in capsys.readouterr().out

    Path("other.toml").write_text(TRIAL.replace("[2, 4, 8]", "[2, 4]"))
    warmq.sweep("other.toml", progress=False)
    rows = duckdb.sql(example("sql tested")).fetchall()
    assert sorted(row[:2] for row in rows) == [("other", 2), ("other", 4), ("trial", 2), ("trial", 4), ("trial", 8)]


def test_the_notebook_runs(here: Path) -> None:
    notebook = nbformat.read(DOCS / "tour.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "the notebook is kept without outputs"
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(here)}}).execute()
    shown = [str(output.get("data", {})) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("<iframe srcdoc=" in text for text in shown), "a report shows itself"
