"""The jobs of the command line: read options and files, apply public transforms, write a file."""

import contextlib
import gc
import importlib
from collections.abc import Iterator

from beam_dp.lazy_names import without_remark
from pipelines import stopping

if stopping.is_program():
    stopping.watch()


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


with without_remark(), _without_collections():
    for _used in ("aggregate", "io.read_rows", "io.write_rows"):
        importlib.import_module(f"beam_dp.transforms.{_used}")
if stopping.is_program():
    # Arrow would handle a Ctrl-C itself while it reads.
    importlib.import_module("pyarrow").enable_signal_handlers(False)
