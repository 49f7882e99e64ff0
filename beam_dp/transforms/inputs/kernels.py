"""Arrow's kernels, which are loaded at their first use: a job's plan does not need them."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("pyarrow.compute"), name)
