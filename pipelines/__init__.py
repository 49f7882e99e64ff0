"""Jobs: options, read, public transforms, write."""

import contextlib
import gc
import importlib
import logging
from collections.abc import Iterator

from pipelines import stopping

if stopping.is_program():
    stopping.watch()


def _concerns_us(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("apitools not found")


@contextlib.contextmanager
def _without_remark() -> Iterator[None]:
    """Hold back what Beam says when it is imported first, of a BigQuery client that it has not."""
    root = logging.getLogger()
    root.addFilter(_concerns_us)
    try:
        yield
    finally:
        root.removeFilter(_concerns_us)


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Keep the garbage collector from what is made meanwhile, then and later.

    Importing makes half a million objects that stay. To look through them again and again takes a
    tenth of the time of a job of ten million rows.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


with _without_remark(), _without_collections():
    importlib.import_module("beam_dp")
if stopping.is_program():
    # Arrow would take a Ctrl-C for itself while it reads.
    importlib.import_module("pyarrow").enable_signal_handlers(False)
