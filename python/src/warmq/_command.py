"""The `warmq` command: where it is, how it is called, and its errors as exceptions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .errors import Problem, WarmqError, error_of


def binary() -> str:
    """The path of the command: `$WARMQ_BINARY`, else the one that was installed with this package."""
    chosen = os.environ.get("WARMQ_BINARY")
    if chosen:
        found = shutil.which(chosen)
        if found is None:
            problem = Problem(f"WARMQ_BINARY={chosen}: this is no program", fix="give its path, or unset it")
            raise WarmqError([problem])
        return found
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))]
    # `pip install --target` puts it beside the package.
    folders.append(str(Path(__file__).parent.parent / "bin"))
    for folder in folders:
        found = shutil.which("warmq", path=folder)
        if found is not None:
            return found
    raise WarmqError([Problem("the command `warmq` is not beside this package", fix="install the wheel again, with pip's --force-reinstall")])


def environment() -> dict[str, str]:
    """The environment of the command: its errors are for this module, not for a terminal."""
    return {**os.environ, "WARMQ_ERRORS": "json", "NO_COLOR": "1"}


def call(arguments: Sequence[str], *, text: Iterator[str] | None = None) -> str:
    """Runs the command to its end, with `text` as its standard input, and returns what it printed."""
    try:
        ran = subprocess.run(
            [binary(), *arguments],
            input=None if text is None else "".join(text),
            stdin=subprocess.DEVNULL if text is None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=environment(),
            check=False,
        )
    except OSError as why:
        raise WarmqError([Problem(f"{binary()} cannot be started: {why}")]) from why
    notes(ran.stderr)
    if ran.returncode != 0:
        raise error_of(ran.returncode, ran.stderr)
    return ran.stdout


def notes(said: str) -> None:
    """Passes on what the command notes about a run that went well."""
    for line in said.splitlines():
        if line.startswith("warmq: note:"):
            print(line, file=sys.stderr)


def objects(arguments: Sequence[str]) -> list[dict[str, Any]]:
    """What the command prints, a JSON object a line."""
    return [json.loads(line) for line in call(arguments).splitlines()]


def stream(arguments: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The same, object by object, while the command prints on."""
    with subprocess.Popen(
        [binary(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=environment(),
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        finished = False
        try:
            for line in process.stdout:
                yield json.loads(line)
            finished = True
        finally:
            if not finished:
                process.kill()
        said = process.stderr.read()
        if process.wait() != 0:
            raise error_of(process.returncode, said)
