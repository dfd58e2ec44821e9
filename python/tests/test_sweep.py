"""Sweeps: the same rows on any workers, nothing lost, nothing doubled, mismatches reported."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import warmq
from conftest import RUNS, TRIAL, many
from distributed import Client, LocalCluster
from warmq import _store
from warmq._command import objects


def test_rows_are_those_of_one_machine_bit_for_bit(here: Path, two: Client) -> None:
    on_two = warmq.sweep("trial.toml", two, "two", progress=False)
    local = warmq.sweep("trial.toml", out="local", progress=False)
    assert on_two.table().equals(local.table())
    assert on_two.rows().equals(warmq.run("trial.toml"))
    assert "1 hold" in on_two.report().html or "holds" in on_two.report().html


def test_every_run_has_its_rows_with_point_seed_and_unit(here: Path) -> None:
    table = warmq.sweep("trial.toml", out="out", progress=False).table()
    rows = table.to_pylist()
    assert [row["number"] for row in rows] == [number for number in range(RUNS) for _ in range(2)]
    assert [row["metric"] for row in rows[:2]] == ["cpu_busy_share", "walk_length"]
    assert {key: rows[0][key] for key in ("tasks", "layout", "seed", "unit")} == {"tasks": 2, "layout": "block", "seed": 1, "unit": "%"}
    assert {row["run"] for row in rows} == {run.digest for run in warmq.plan("trial.toml")}


def test_a_finished_sweep_is_not_made_again(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first = warmq.sweep("trial.toml", out="out")
    files = sorted(first.folder.iterdir())
    again = warmq.sweep("trial.toml", out="out")
    assert sorted(again.folder.iterdir()) == files
    said = capfd.readouterr().err
    assert "dashboard: http://127.0.0.1:" in said
    assert f"{RUNS} of {RUNS} runs are in out/experiment=trial already" in said
    assert warmq.open_sweep("out/experiment=trial").table().equals(first.table())


def test_what_is_missing_is_made_and_nothing_else(here: Path) -> None:
    whole = warmq.sweep("trial.toml", out="out", progress=False)
    expected = whole.table()
    kept = set(whole.folder.glob("*.parquet"))
    for file in kept:
        rows = pq.read_table(file)
        pq.write_table(rows.filter(rows["number"].to_numpy() % 3 != 0), file)
    (whole.folder / ".half.parquet.unfinished").write_bytes(b"PAR1")
    assert warmq.sweep("trial.toml", out="out", progress=False).table().equals(expected)
    made = [pq.read_table(file)["number"].to_pylist() for file in set(whole.folder.glob("*.parquet")) - kept]
    assert {number for numbers in made for number in numbers} == set(range(0, RUNS, 3))
    assert not list(whole.folder.glob(".*"))


def test_experiments_stand_side_by_side_in_one_folder(here: Path) -> None:
    Path("other.toml").write_text(TRIAL.replace("[2, 4, 8]", "[2]"))
    for name in ("trial", "other"):
        warmq.sweep(f"{name}.toml", out="out", progress=False)
    assert sorted(os.listdir("out")) == ["experiment=other", "experiment=trial"]


def test_a_folder_of_another_plan_is_refused(here: Path) -> None:
    warmq.sweep("trial.toml", out="out", progress=False)
    with pytest.raises(warmq.VersionError, match="another plan") as caught:
        warmq.sweep("trial.toml", out="out", progress=False, colors=4)
    assert caught.value.fix and "choose another `out`" in caught.value.fix
    assert caught.value.file == "out/experiment=trial"


def test_a_folder_of_another_build_is_refused(here: Path, another: str, monkeypatch: pytest.MonkeyPatch) -> None:
    warmq.sweep("trial.toml", out="out", progress=False)
    monkeypatch.setenv("WARMQ_BINARY", another)
    with pytest.raises(warmq.VersionError, match="another build of warmq"):
        warmq.sweep("trial.toml", out="out", progress=False)
    with pytest.raises(warmq.InputError, match="another build of warmq made this run"):
        warmq.open_sweep("out/experiment=trial").rows()


def test_a_folder_of_other_rows_is_refused(here: Path) -> None:
    Path("out/experiment=trial").mkdir(parents=True)
    Path("out/experiment=trial/mine.parquet").touch()
    with pytest.raises(warmq.InputError, match="rows of no sweep"):
        warmq.sweep("trial.toml", out="out", progress=False)


def test_two_sweeps_do_not_write_into_one_folder(here: Path) -> None:
    (summary,) = objects(["plan", "trial.toml", "--summary"])
    with _store.Store("out", summary, ["trial.toml"]), pytest.raises(warmq.InputError, match="another sweep writes here"):
        warmq.sweep("trial.toml", out="out", progress=False)
    warmq.sweep("trial.toml", out="out", progress=False)


def test_an_interrupt_after_a_file_has_its_name_does_not_double_its_rows(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: Path, write: object) -> None:
        write_whole(path, write)
        raise KeyboardInterrupt

    expected = warmq.sweep("trial.toml", out="whole", progress=False).table()
    write_whole = _store.write_whole
    (summary,) = objects(["plan", "trial.toml", "--summary"])
    with pytest.raises(KeyboardInterrupt), _store.Store("out", summary, ["trial.toml"]) as store, monkeypatch.context() as patched:
        patched.setattr(_store, "write_whole", interrupted)
        for line in objects(["run", "trial.toml", "--only", "0-5"]):
            store.add(line)
        store.flush()
    assert warmq.sweep("trial.toml", out="out", progress=False).table().equals(expected)


def test_a_worker_with_another_build_is_reported(here: Path, another: str) -> None:
    with (
        LocalCluster(n_workers=1, dashboard_address=None, silence_logs=50, env={"WARMQ_BINARY": another}) as cluster,
        Client(cluster) as client,
        pytest.raises(warmq.VersionError, match=r"worker tcp://\S+ has another build of warmq") as caught,
    ):
        warmq.sweep("trial.toml", client, "out", progress=False)
    assert caught.value.file == another and caught.value.key == "build"
    assert caught.value.fix == "install the same wheel of warmq on every worker"
    assert not list(Path("out").rglob("*.parquet"))


def test_a_worker_with_another_plan_is_reported(here: Path, binary: str) -> None:
    # As a scenario at an absolute path would be whose text is another there.
    fake = here / "fake"
    fake.write_text(f'#!/bin/sh\nexec "{binary}" "$@" --set colors=4\n')
    fake.chmod(0o755)
    with (
        LocalCluster(n_workers=1, dashboard_address=None, silence_logs=50, env={"WARMQ_BINARY": str(fake)}) as cluster,
        Client(cluster) as client,
        pytest.raises(warmq.VersionError, match=r"worker tcp://\S+ has another plan") as caught,
    ):
        warmq.sweep("trial.toml", client, "out", progress=False)
    assert caught.value.key == "plan"
    assert not list(Path("out").rglob("*.parquet"))


def test_a_worker_without_warmq_is_reported(here: Path) -> None:
    (here / "none/warmq").mkdir(parents=True)
    (here / "none/warmq/__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'warmq'\", name='warmq')\n")
    with LocalCluster(n_workers=0, dashboard_address=None, silence_logs=50) as cluster, Client(cluster) as client:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address, "--no-nanny", "--no-dashboard"]
        environment = {**os.environ, "PYTHONPATH": str(here / "none")}
        with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as worker:
            try:
                client.wait_for_workers(1, timeout=60)
                with pytest.raises(warmq.VersionError, match="a worker has no warmq") as caught:
                    warmq.sweep("trial.toml", client, "out", progress=False)
            finally:
                worker.kill()
    assert caught.value.fix == "install the same wheel of warmq on every worker"


def test_files_of_an_experiment_reach_the_workers(here: Path, two: Client) -> None:
    Path("mine").mkdir()
    Path("mine/hog.toml").write_text('[task.hog]\nbody = [{ run = "1ms" }]\n')
    Path("mine/of-file.toml").write_text(
        'title = "x"\nmachine = "tiny-1cpu"\nscheduler = "linux24"\nworkload = "mine/hog.toml"\n'
        '[run]\nwarmup = "0ms"\ntime = "10ms"\n[[measure]]\nmetric = "*"\n'
    )
    made = warmq.sweep("mine/of-file.toml", two, "out", progress=False)
    assert made.rows().equals(warmq.run("mine/of-file.toml"))


def test_a_scenario_may_lie_in_any_folder_that_workers_see(here: Path, two: Client) -> None:
    Path("mine").mkdir()
    Path("mine/hog.toml").write_text('[task.hog]\nbody = [{ run = "1ms" }]\n')
    overrides: dict[str, object] = {"machine": "tiny-1cpu", "time": "10ms", "warmup": "0ms", "seeds": 2}
    expected = warmq.run("mine/hog.toml", **overrides)
    for at, name in enumerate(["mine/hog.toml", "./mine/hog.toml", here / "mine/hog.toml"]):
        made = warmq.sweep(name, two, f"out-{at}", progress=False, **overrides)
        assert made.rows().equals(expected), name
    with pytest.raises(warmq.InputError, match="write its absolute path"):
        warmq.sweep("../" + here.name + "/mine/hog.toml", two, "out", progress=False, **overrides)


def test_an_experiment_may_lie_anywhere(here: Path, two: Client) -> None:
    Path("mine").mkdir()
    Path("trial.toml").rename("mine/trial.toml")
    for at, name in enumerate([here / "mine/trial.toml", f"../{here.name}/mine/trial.toml"]):
        made = warmq.sweep(name, two, f"out-{at}", progress=False, seeds=1)
        assert made.rows().equals(warmq.run("mine/trial.toml", seeds=1))


def test_a_wrong_experiment_is_reported_before_anything_is_written(here: Path) -> None:
    Path("wrong.toml").write_text(TRIAL.replace("tasks = [2", "taskz = [2"))
    for name in ("wrong.toml", "none.toml"):
        with pytest.raises(warmq.InputError) as caught:
            warmq.sweep(name, out="out", progress=False)
        assert caught.value.file == name
    assert not Path("out").exists()


def test_jobs_are_refused(here: Path) -> None:
    with pytest.raises(warmq.InputError, match="as its workers have threads"):
        warmq.sweep("trial.toml", out="out", jobs=2)


def test_without_pandas_a_notebook_shows_the_repr(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = warmq.sweep("trial.toml", out="out", progress=False)
    assert "<table" in (made._repr_html_() or "")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert made._repr_html_() is None
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ImportError, match=r"duckdb is not installed; pip install 'warmq\[duckdb\]'"):
        made.sql("select 1")


def test_real_worlds_are_refused(here: Path) -> None:
    with pytest.raises(warmq.InputError, match="a sweep simulates"):
        warmq.sweep("hog", out="out", world="host")


def test_a_run_without_a_measurement_is_a_row_that_says_why(here: Path) -> None:
    Path("trial.toml").write_text(TRIAL.replace("[2, 4, 8]", "[2, 90000]"))
    made = warmq.sweep("trial.toml", out="out", progress=False)
    failures = made.failures().to_pylist()
    assert {(row["tasks"], row["cause"], row["metric"]) for row in failures} == {(90000, "memory-full", None)}
    assert len(failures) == 4
    # It is a result, which is kept.
    assert warmq.sweep("trial.toml", out="out", progress=False).table().equals(made.table())


def test_rows_are_queried_where_they_are(here: Path) -> None:
    made = warmq.sweep("trial.toml", out="out", progress=False)
    query = "select tasks, median(value) from sweep where metric = 'walk_length' group by tasks order by tasks"
    asked = made.sql(query).fetchall()
    frame = made.to_pandas()
    expected = frame[frame["metric"] == "walk_length"].groupby("tasks")["value"].median()
    assert asked == list(expected.items())
    assert len(made.to_polars()) == len(frame)


def test_a_command_that_dies_is_started_again(here: Path, tmp_path: Path, binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The first `run --only` takes one run and is killed, as by the kernel when memory is full.
    fake = tmp_path / "fake"
    fake.write_text(
        f'#!/bin/sh\ncase "$*" in *--only*) if mkdir "{tmp_path}/once" 2> /dev/null; then read -r _; kill -9 $$; fi ;; esac\nexec "{binary}" "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("WARMQ_BINARY", str(fake))
    made = warmq.sweep("trial.toml", out="out", progress=False)
    assert (tmp_path / "once").exists()
    monkeypatch.delenv("WARMQ_BINARY")
    assert made.table().equals(warmq.sweep("trial.toml", out="other", progress=False).table())


def test_a_run_whose_command_always_dies_is_named(here: Path, binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = here / "fake"
    fake.write_text(
        f'#!/bin/sh\ncase "$*" in *--only*) ;; *) exec "{binary}" "$@" ;; esac\n'
        f'while read -r run; do case $run in 7:*) kill -9 $$ ;; esac; echo "$run" | "{binary}" "$@"; done\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("WARMQ_BINARY", str(fake))
    with pytest.raises(warmq.WarmqError, match=r"run 7: the command broke off \(ended by signal 9\)"):
        warmq.sweep("trial.toml", out="out", progress=False)


def test_a_worker_that_dies_is_replaced_and_nothing_is_lost(here: Path) -> None:
    Path("many.toml").write_text(many(20, 50))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster, Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        killer = threading.Thread(target=lambda: (wait_for_rows(), os.kill(pids[0], signal.SIGKILL)))
        killer.start()
        made = warmq.sweep("many.toml", client, "out", progress=False)
        killer.join()
    numbers = made.table()["number"].to_pylist()
    assert numbers == list(range(1000))


def test_a_worker_that_dies_while_it_is_asked_to_take_part_is_replaced(
    here: Path, tmp_path: Path, binary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first worker that asks its command for the plan is killed by it; this process asks it, too, and is not.
    fake = tmp_path / "fake"
    fake.write_text(
        f'#!/bin/sh\nif [ $PPID -ne {os.getpid()} ] && mkdir "{tmp_path}/once" 2> /dev/null; then kill -9 $PPID; fi\n'
        f'exec "{binary}" "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("WARMQ_BINARY", str(fake))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster, Client(cluster) as client:
        made = warmq.sweep("trial.toml", client, "out", progress=False)
    assert (tmp_path / "once").exists()
    assert len(set(made.table()["number"].to_pylist())) == RUNS


def test_a_worker_that_joins_late_takes_its_part(here: Path) -> None:
    Path("many.toml").write_text(many(40, 100))
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster, Client(cluster) as client:
        (first,) = client.scheduler_info()["workers"]
        joining = threading.Thread(target=lambda: (wait_for_rows(), cluster.scale(2)))
        joining.start()
        made = warmq.sweep("many.toml", client, "out", progress=False)
        joining.join()
        executed = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert executed.pop(first) > 0
    assert len(executed) == 1 and all(count > 0 for count in executed.values())
    assert made.table()["number"].to_pylist() == list(range(4000))


def started(out: str) -> subprocess.Popen[bytes]:
    """A sweep of `many.toml` in a process of its own."""
    script = f"import warmq; warmq.sweep('many.toml', out='{out}')"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.PIPE, start_new_session=True)


def wait_for_rows(process: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + 60
    while not list(Path("out").rglob("*.parquet")):
        assert (process is None or process.poll() is None) and time.monotonic() < deadline, "the sweep has written nothing"
        time.sleep(0.02)


def test_a_sweep_that_is_killed_goes_on_with_no_row_lost_or_doubled(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # 20,000 take some minutes: WARMQ_KILLED_RUNS=20000.
    runs = int(os.environ.get("WARMQ_KILLED_RUNS", "1000"))
    Path("many.toml").write_text(many(40, runs // 40))
    began = time.monotonic()
    whole = started("whole")
    whole.communicate()
    assert whole.returncode == 0
    took = time.monotonic() - began
    expected = warmq.open_sweep("whole/experiment=many").table()
    assert expected["number"].to_pylist() == list(range(runs))

    moment = random.Random().uniform(0.0, took)
    process = started("out")
    time.sleep(moment)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    kept = sum(pq.read_metadata(file).num_rows for file in Path("out").rglob("*.parquet"))
    print(f"killed after {moment:.3f} of {took:.3f} s, with {kept} of {runs} runs kept")
    assert warmq.sweep("many.toml", out="out", progress=False).table().equals(expected)


def test_an_interrupted_sweep_keeps_what_it_has_and_says_how_to_go_on(here: Path) -> None:
    Path("many.toml").write_text(many(100, 1000))
    process = started("out")
    wait_for_rows(process)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode != 0
    assert "interrupted; " in said and "the same call goes on from there" in said
    kept = warmq.open_sweep("out/experiment=many").table()["number"].to_pylist()
    assert len(kept) == len(set(kept)) > 0
    left = subprocess.run(["pgrep", "-s", str(process.pid)], stdout=subprocess.PIPE, check=False)
    assert left.stdout == b"", "no process stays behind"


def test_keys_that_have_the_name_of_a_column_are_refused(here: Path) -> None:
    with pytest.raises(warmq.InputError, match="a column of every sweep has this name"):
        _store.schema_of({"keys": [{"name": "seed", "type": "integer"}]})
