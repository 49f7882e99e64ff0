"""Public names whose modules are loaded at their first use.

Apache Beam and what is built on it take two thirds of a second to load. Whoever asks for a piece of
the mathematics alone does not wait for them, and a pipeline loads what it asks for.
"""

import contextlib
import importlib
import logging
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType

Getter = Callable[[str], object]
Lister = Callable[[], list[str]]


_REMARKS = {
    "": "apitools not found",
    "apache_beam.io.mongodbio": "Could not find a compatible bson",
}
"""What Beam's first import says of clients that are not installed, by the name of the logger."""


def _concerns_us(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(tuple(_REMARKS.values()))


@contextlib.contextmanager
def without_remarks() -> Iterator[None]:
    """Hold back the remarks of Beam's first import about clients that are not installed.

    One is logged by a function that would also give the root logger a handler for good, if it has
    none: then a program's own `logging.basicConfig` would do nothing. So it has one meanwhile.
    """
    root, loggers = logging.getLogger(), [logging.getLogger(name) for name in _REMARKS]
    meanwhile = [] if root.handlers else [logging.lastResort or logging.NullHandler()]
    for logger in loggers:
        logger.addFilter(_concerns_us)
    root.handlers += meanwhile
    try:
        yield
    finally:
        for handler in meanwhile:
            root.removeHandler(handler)
        for logger in loggers:
            logger.removeFilter(_concerns_us)


def lazy(package: str, modules: Mapping[str, Sequence[str]]) -> tuple[Getter, Lister, list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose names are loaded later.

    Its own packages and modules are names of it too.

    Args:
        package: the name of the package.
        modules: for each module, the names that it has.
    """
    modules_of = {name: module for module, names in modules.items() for name in names}
    inside = {module.name for module in pkgutil.iter_modules(sys.modules[package].__path__)}

    def get(name: str) -> object:
        if name in modules_of:
            value = getattr(_loaded(modules_of[name]), name)
        elif name in inside:
            value = _loaded(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)  # found without this function from now on
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules_of, *inside})

    return get, names, ["__version__", *sorted(modules_of)]


def _loaded(module: str) -> ModuleType:
    with without_remarks():
        return importlib.import_module(module)
