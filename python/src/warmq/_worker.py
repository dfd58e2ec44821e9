"""What a worker of a sweep does: it keeps commands running, and each answers run by run.

A command that is started for every run would cost a process and a look at the whole experiment each; one that goes
on costs neither, and still every run is a task of its own, with its own key, result and retries.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distributed import WorkerPlugin, get_worker

from ._command import binary, environment
from .errors import InputError, Problem, VersionError, WarmqError, error_of


@dataclass(frozen=True)
class Spec:
    """All that a worker must know of a sweep."""

    arguments: Sequence[str]
    """The words that name the experiment and what is changed in it."""
    version: str
    """The version of warmq that planned it."""
    build: str
    """The digest of that program."""
    plan: str
    """The digest of the plan."""
    files: dict[str, bytes] = field(default_factory=dict)
    """The files that the words name, by path below the folder in which the command is run."""

    @property
    def name(self) -> str:
        """What the plugin is called."""
        return f"warmq-{self.plan}"


class Lab(WorkerPlugin):
    """The commands of one worker, one for each of its threads that is at work."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.name = spec.name
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[subprocess.Popen[str]] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._wrong: WarmqError | None = None

    def __getstate__(self) -> Spec:
        return self.spec

    def __setstate__(self, spec: Spec) -> None:
        self.spec, self.name = spec, spec.name
        self._forget()

    def setup(self, worker: Any) -> None:
        """Looks whether this worker's program makes the same plan. What is wrong is raised by `check`: here it
        would only end the worker."""
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="warmq-")
            for name, content in self.spec.files.items():
                path = Path(self._folder.name, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            self._compare(str(worker.address))
        except WarmqError as wrong:
            self._wrong = wrong
        except OSError as why:
            self._wrong = WarmqError([Problem(f"worker {worker.address}: {why}")])

    def teardown(self, worker: Any) -> None:
        """Ends the commands."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            _end(process)
        if self._folder is not None:
            self._folder.cleanup()

    def check(self) -> None:
        """Raises what is wrong with this worker."""
        if self._wrong is not None:
            raise self._wrong

    def take(self, number: int, digest: str) -> str:
        """Makes a run, and returns its line."""
        self.check()
        with self._lock:
            process = self._idle.pop() if self._idle else self._start(["run", *self.spec.arguments, "--only", "-"])
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(f"{number}:{digest}\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        except BaseException:
            _end(process)
            raise
        if not line.endswith("\n"):
            raise self._ended(process, number)
        with self._lock:
            self._idle.append(process)
        return line

    def _compare(self, address: str) -> None:
        process = self._start(["plan", *self.spec.arguments, "--summary"])
        printed, said = process.communicate()
        if process.returncode != 0:
            raise _on(f"worker {address}", error_of(process.returncode, said))
        here = json.loads(printed)
        for key, what in [("build", "another build of warmq"), ("plan", "another plan")]:
            if here[key] != getattr(self.spec, key):
                said = f"worker {address} has {what}: {here['version']}, {key} {here[key]}; the sweep is of {self.spec.version}, {key} {getattr(self.spec, key)}"
                raise VersionError([Problem(said, file=binary(), key=key, fix="install the same wheel of warmq on every worker")])

    def _start(self, arguments: Sequence[str]) -> subprocess.Popen[str]:
        assert self._folder is not None
        return subprocess.Popen(
            [binary(), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=environment(),
            cwd=self._folder.name,
            # Ctrl-C is for the session, which ends its workers.
            start_new_session=True,
        )

    def _ended(self, process: subprocess.Popen[str], number: int) -> WarmqError:
        said = process.communicate()[1]
        error = _on(f"run {number}", error_of(process.returncode, said))
        return VersionError(error.problems) if isinstance(error, InputError) else error


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _on(place: str, error: WarmqError) -> WarmqError:
    problems = [Problem(f"{place}: {it.what}", it.file, it.line, it.key, it.fix) for it in error.problems]
    return type(error)(problems, error.code)


def take(name: str, number: int, digest: str) -> str:
    """The task of a run."""
    return _lab(get_worker(), name).take(number, digest)


def check(name: str, dask_worker: Any) -> None:
    """Raises what is wrong with `dask_worker`, which Dask passes by that name."""
    _lab(dask_worker, name).check()


def _lab(worker: Any, name: str) -> Lab:
    lab = worker.plugins[name]
    assert isinstance(lab, Lab)
    return lab


def shipped(files: Sequence[str]) -> dict[str, bytes]:
    """The files of a sweep, to be laid into the folder of every worker under the same names."""
    shipped: dict[str, bytes] = {}
    for name in files:
        if os.path.isabs(name):
            continue
        if ".." in Path(name).parts:
            problem = Problem("workers find files below this folder, or by an absolute path", name, fix="write its absolute path, or move it here")
            raise InputError([problem])
        shipped[name] = Path(name).read_bytes()
    return shipped
