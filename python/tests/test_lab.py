"""Running, planning, listing; and errors that say where and how to fix it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy
import pyarrow
import pytest
import warmq
from conftest import RUNS, TRIAL


def rows_of_command(binary: str, *arguments: str) -> list[dict[str, object]]:
    ran = subprocess.run([binary, "run", *arguments, "--json"], stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_rows_are_those_of_the_command(here: Path, binary: str) -> None:
    table = warmq.run("trial.toml", quick=False, jobs=1)
    expected = [{**row, **row.pop("point")} for row in rows_of_command(binary, "trial.toml")]  # type: ignore[dict-item]
    assert table.to_pylist() == [{name: row[name] for name in table.column_names} for row in expected]
    # The base of `more` has no value.
    assert table.num_rows == 6 + 6 + 4


@pytest.mark.parametrize(
    ("overrides", "arguments"),
    [
        ({"seeds": [2]}, ["--seeds", "2,"]),
        ({"seeds": 1, "machine": "tiny-2cpu"}, ["--seeds", "1", "--machine", "tiny-2cpu"]),
        ({"colors": 4}, ["--set", "colors=4"]),
        ({"colors": numpy.int64(4), "seeds": numpy.int64(1)}, ["--set", "colors=4", "--seeds", "1"]),
        ({"seeds": numpy.array([2]), "quick": False}, ["--seeds", "2,"]),
        ({"settings": {"scheduler.pde": False}}, ["--set", "scheduler.pde=false"]),
    ],
)
def test_overrides_are_the_options_of_the_command(here: Path, binary: str, overrides: dict[str, object], arguments: list[str]) -> None:
    values = [row["value"] for row in warmq.run("trial.toml", **overrides).to_pylist()]
    assert values == [row["value"] for row in rows_of_command(binary, "trial.toml", *arguments)]


def test_a_plan_has_every_run_once(here: Path) -> None:
    plan = warmq.plan("trial.toml")
    assert [run.number for run in plan] == list(range(RUNS))
    assert len({run.digest for run in plan}) == RUNS
    assert plan[0].point == {"tasks": 2, "layout": "block"}
    assert warmq.plan("trial.toml", jobs=1) == plan
    # The iterator may be left early.
    assert next(warmq.plan_iter("trial.toml")) == plan[0]


def test_lists_name_what_there_is(binary: str) -> None:
    for listed, command in [(warmq.machines(), "machines"), (warmq.schedulers(), "schedulers"), (warmq.scenarios(), "workloads")]:
        text = subprocess.run([binary, command], stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
        names = [line.split()[0] for line in text.splitlines() if line.startswith(" ") and not line.startswith("  ")]
        assert [entry["name"] for entry in listed] == [name for name in names if name != "host"]
    (colors,) = [it for it in warmq.schedulers()[0]["settings"] if it["name"] == "colors"]
    assert colors["default"] == 1 and colors["unit"] == "colors"


def test_a_report_shows_itself_and_becomes_frames(here: Path) -> None:
    report = warmq.report("trial.toml")
    shown = report._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "A trial" in shown
    assert 'sandbox=""' in shown, "no script of the page runs in the notebook"
    assert report.save("page.html").read_text() == report.html
    pandas, polars = report.to_pandas(), report.to_polars()
    assert len(pandas) == len(polars) == report.table.num_rows
    assert pandas["value"].tolist() == polars["value"].to_list()


@pytest.mark.parametrize(("package", "extra"), [("pandas", "pandas"), ("polars", "polars"), ("distributed", "sweep")])
def test_a_package_that_is_not_installed_is_named_with_its_extra(package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    uses = {
        "pandas": lambda: warmq.Report(pyarrow.table({}), "").to_pandas(),
        "polars": lambda: warmq.Report(pyarrow.table({}), "").to_polars(),
        "distributed": lambda: warmq.sweep,
    }
    with pytest.raises(ImportError, match=rf"{package} is not installed; pip install 'warmq\[{extra}\]'"):
        uses[package]()


def test_a_wrong_path_is_an_error_with_file_and_fix(here: Path) -> None:
    for function in (warmq.run, warmq.report, warmq.plan):
        with pytest.raises(warmq.InputError) as caught:
            function("none.toml")
        assert caught.value.file == "none.toml"
        assert caught.value.fix and caught.value.fix.startswith("give a file")
        assert "none.toml: cannot read it" in str(caught.value)


def test_a_wrong_key_is_an_error_with_file_line_key_and_fix(here: Path) -> None:
    Path("wrong.toml").write_text(TRIAL.replace("tasks = [2", "taskz = [2"))
    with pytest.raises(warmq.InputError) as caught:
        warmq.run("wrong.toml")
    error = caught.value
    assert (error.file, error.line, error.key, error.code) == ("wrong.toml", 12, "sweep.taskz", 2)
    assert error.fix == "did you mean `tasks`?"


def test_a_wrong_override_is_an_error_at_its_option(here: Path) -> None:
    with pytest.raises(warmq.InputError, match="colours") as caught:
        warmq.run("trial.toml", colours=4)
    assert caught.value.file == "--set"
    for value in ([1, 2], 1.5):
        with pytest.raises(warmq.InputError, match="give a whole number.*lists are swept"):
            warmq.run("trial.toml", colors=value)
    for value in (1.5, [1.5]):
        with pytest.raises(warmq.InputError, match="give a whole number, or a list of them"):
            warmq.run("trial.toml", seeds=value)


def test_a_run_that_gives_no_measurement_is_an_error_of_its_own(here: Path) -> None:
    with pytest.raises(warmq.RunError, match="does not fit into the machine") as caught:
        warmq.run("spin", machine="tiny-1cpu", tasks=90000)
    assert caught.value.code == 4


def test_errors_travel_between_machines() -> None:
    error = warmq.RunError([warmq.Problem("so", "it.toml", 3, "key", "fix")], 4)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.problems, again.code) == (warmq.RunError, error.problems, 4)


def test_a_command_that_is_not_there_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMQ_BINARY", "/nonexistent/warmq")
    with pytest.raises(warmq.WarmqError, match="this is no program; give its path, or unset it"):
        warmq.machines()


def test_the_module_is_the_command() -> None:
    version = subprocess.run([sys.executable, "-m", "warmq", "--version"], stdout=subprocess.PIPE, check=True)
    assert version.stdout.decode().split() == ["warmq", warmq.__version__]
