"""Errors that say what is wrong, where, and how to fix it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    >>> print(Problem("no part in use has a setting `cpuz`", "it.toml", 10, "sweep.cpuz", "did you mean `cpus`?"))
    it.toml:10: `sweep.cpuz`: no part in use has a setting `cpuz`; did you mean `cpus`?
    """

    what: str
    """What is wrong, in a sentence."""
    file: str | None = None
    """The file, or the option, that it is in."""
    line: int | None = None
    """The line of the file, counted from 1."""
    key: str | None = None
    """The key, with the tables that lead to it: `sweep.cpus`."""
    fix: str | None = None
    """How to fix it."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        parts = [place, f"`{self.key}`" if self.key else None, self.what]
        said = ": ".join(part for part in parts if part)
        return _printable(f"{said}; {self.fix}" if self.fix else said)


def _printable(text: str) -> str:
    """Names are other people's, and the message may be shown by a terminal.

    >>> print(_printable("the file ä\\x1b[2J"))
    the file ä\\x1b[2J
    """
    return "".join(it if it.isprintable() or it == "\n" else it.encode("unicode_escape").decode() for it in text)


class WarmqError(Exception):
    """Something went wrong. `file`, `line`, `key` and `fix` are those of the first of its `problems`."""

    def __init__(self, problems: Sequence[Problem], code: int = 2) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = list(problems)
        """All that is wrong."""
        self.code = code
        """The exit code of the command, as `warmq --help` lists them."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions travel between the machines of a sweep.
        return (type(self), (self.problems, self.code))

    @property
    def file(self) -> str | None:
        """The file that is wrong."""
        return self.problems[0].file

    @property
    def line(self) -> int | None:
        """Its line, counted from 1."""
        return self.problems[0].line

    @property
    def key(self) -> str | None:
        """The key that is wrong."""
        return self.problems[0].key

    @property
    def fix(self) -> str | None:
        """How to fix it."""
        return self.problems[0].fix

    def as_dicts(self) -> list[dict[str, Any]]:
        """The problems as plain data."""
        return [asdict(problem) for problem in self.problems]


class InputError(WarmqError):
    """What was asked for makes no sense: a file, a key, a value."""


class RunError(WarmqError):
    """A run gave no measurement: the scheduler broke a rule, a stall, no memory."""


class MachineError(WarmqError):
    """This machine cannot do it: no permission, no space, no program."""


class VersionError(WarmqError):
    """A worker, or a sweep that was begun, has another `warmq` or another plan than this session."""


_CLASSES: dict[int, type[WarmqError]] = {
    2: InputError,
    3: RunError,
    4: RunError,
    6: MachineError,
    7: RunError,
    8: RunError,
}


def error_of(code: int, said: str) -> WarmqError:
    """The exception for a command that ended with `code` and `said` this on standard error."""
    last = said.strip().splitlines()[-1:] or [""]
    if code in (130, -2):
        return WarmqError([Problem("interrupted")], code)
    try:
        problems = [Problem(**problem) for problem in json.loads(last[0])["problems"]]
    except (ValueError, KeyError, TypeError):
        ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
        problems = [Problem(f"the command broke off ({ended}): {said.strip()[-500:]}")]
    return _CLASSES.get(code, WarmqError)(problems, code)
