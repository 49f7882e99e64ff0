"""The jobs of the command line: read options and files, apply public transforms, write a file."""

import contextlib
import gc
import importlib
import sys
from collections.abc import Iterator
from typing import Any

from beam_dp.lazy_names import without_remarks
from pipelines import stopping

if stopping.is_program():
    stopping.watch()


_NOT_USED = ("bson", "pandas")
"""What Beam loads where it is installed: for MongoDB and for DataFrames, which no job uses."""


@contextlib.contextmanager
def _without_what_is_not_used() -> Iterator[None]:
    """Let Beam find nothing of that meanwhile: loading it takes longer than all of this library."""
    modules: dict[str, Any] = sys.modules
    left_out = [name for name in _NOT_USED if name not in modules]
    modules.update(dict.fromkeys(left_out))
    try:
        yield
    finally:
        for name in left_out:
            del modules[name]


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Keep the garbage collector from the objects that are made meanwhile, now and later.

    Importing makes half a million objects that stay. Searching them again and again takes a tenth
    of the time of a job of ten million rows.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


with contextlib.ExitStack() as _quickly:
    _quickly.enter_context(without_remarks())
    _quickly.enter_context(_without_collections())
    if stopping.is_program():
        _quickly.enter_context(_without_what_is_not_used())
    for _used in ("aggregate", "io.read_rows", "io.write_rows"):
        importlib.import_module(f"beam_dp.transforms.{_used}")
if stopping.is_program():
    # Arrow would handle a Ctrl-C itself while it reads.
    importlib.import_module("pyarrow").enable_signal_handlers(False)
