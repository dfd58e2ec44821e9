"""Packages that need not be installed: each comes with an extra of this one."""

from __future__ import annotations

import importlib
from typing import Any


def needed(package: str, extra: str) -> Any:
    """The package, or an error that says which extra brings it.

    >>> needed("colours", "colours")
    Traceback (most recent call last):
    ImportError: colours is not installed; pip install 'warmq[colours]'
    """
    try:
        return importlib.import_module(package)
    except ImportError as why:
        raise ImportError(f"{package} is not installed; pip install 'warmq[{extra}]'", name=package) from why
