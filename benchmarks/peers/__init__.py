"""What a user would pick instead, doing the same work on the same file."""

import importlib
import sys
from types import ModuleType

INSTALL = "python -m pip install --editable '.[bench]'"


def imported(name: str) -> ModuleType:
    """Return the module of a peer; where it is not installed, end with one line that says how."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        sys.exit(f"{name} is not here: {INSTALL}, or name one that has it: --peer_python PYTHON")
