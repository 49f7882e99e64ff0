"""The jobs of the command line: read options and files, apply public transforms, write a file."""

import contextlib
import gc
import importlib
import sys
from typing import Any

from beam_dp.lazy_names import without_remarks
from pipelines import stopping

_modules: dict[str, Any] = sys.modules
_not_used: list[str] = []
if stopping.is_program():
    stopping.watch()
    # What Beam loads where it is installed, for MongoDB and for DataFrames, which no job uses: that
    # takes half a second.
    _not_used = [name for name in ("bson", "pandas") if name not in _modules]

# Importing makes half a million objects that stay. Searching them for garbage again and again takes
# a tenth of the time of a job of ten million rows.
_enabled = gc.isenabled()
gc.disable()
_modules.update(dict.fromkeys(_not_used))
with without_remarks():
    for _used in ("aggregate", "io.read_rows", "io.write_rows"):
        importlib.import_module(f"beam_dp.transforms.{_used}")
    for _ in range(2):  # Arrow looks for pandas in two places, when it first makes a column
        with contextlib.suppress(ImportError, AttributeError):
            importlib.import_module("pyarrow").array([])
for _name in _not_used:
    del _modules[_name]
gc.freeze()
if _enabled:
    gc.enable()
if stopping.is_program():
    # Arrow would handle a Ctrl-C itself while it reads.
    importlib.import_module("pyarrow").enable_signal_handlers(False)
