"""Public names whose modules are loaded at their first use.

Apache Beam and what is built on it take two thirds of a second to load. Whoever asks for a piece of
the mathematics alone does not wait for them, and a pipeline loads what it asks for.
"""

import ast
import contextlib
import importlib
import logging
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

Getter = Callable[[str], object]
Lister = Callable[[], list[str]]


@contextlib.contextmanager
def without_remarks() -> Iterator[None]:
    """Hold back what Beam logs at its first import of clients that are not installed.

    One remark would also give the root logger a handler for good, if it has none: then a program's
    own `logging.basicConfig` would do nothing.
    """
    root, before = logging.getLogger(), logging.root.manager.disable
    handlers = [*root.handlers]
    logging.disable(max(before, logging.WARNING))
    try:
        yield
    finally:
        logging.disable(before)
        root.handlers[:] = handlers


def lazy(package: str, source: str) -> tuple[Getter, Lister, list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose names are loaded later.

    The names are those that the package imports for type checkers, under `if TYPE_CHECKING`: so
    each stands once. Its own packages and modules are names of it too.

    Args:
        package: the name of the package.
        source: the path of its `__init__.py`.
    """
    tree = ast.parse(Path(source).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    module_of = {
        alias.asname: node.module
        for node in imports
        for alias in node.names
        if node.module and alias.asname == alias.name
    }
    inside = {module.name for module in pkgutil.iter_modules(sys.modules[package].__path__)}

    def get(name: str) -> object:
        if name not in {*module_of, *inside}:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with without_remarks():
            if name in inside:
                value: object = importlib.import_module(f"{package}.{name}")
            else:
                value = getattr(importlib.import_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)  # found without this function from now on
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of, *inside})

    return get, names, ["__version__", *sorted(set(module_of) - inside)]
