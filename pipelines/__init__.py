"""Jobs: options, read, public transforms, write."""

import contextlib
import importlib
import logging
from collections.abc import Iterator


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


with _without_remark():
    importlib.import_module("apache_beam")
