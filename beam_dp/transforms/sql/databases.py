"""DuckDB databases that reach no file, no network, no extension and no setting."""

import functools
import importlib.util
from typing import Any

from beam_dp.mechanisms.numerics import checks

_EXTERNAL = "enable_external_access"
_CONFIG = {
    _EXTERNAL: "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "threads": "1",
}
_SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET error_on_division_by_zero = false",
    "PRAGMA disable_optimizer",
    "SET lock_configuration = true",
    *(
        f"CREATE MACRO {name}(x) AS CASE WHEN x {domain} 0 THEN system.main.{name}(x) END"
        for name, domain in map(str.split, ("ln >", "log >", "log2 >", "log10 >", "sqrt >="))
    ),
)


def duckdb() -> Any:
    """Return the library; refuse where it is not installed."""
    found = importlib.util.find_spec("duckdb") is not None
    checks.require(found, "Rows", "duckdb", "be installed", "Write: pip install duckdb.")
    return importlib.import_module("duckdb")  # here, for it comes with an extra


def of_files() -> Any:
    """Return a DuckDB that reads files, as those of public tables."""
    return duckdb().connect(config={**_CONFIG, _EXTERNAL: "true"})


def connected() -> Any:
    """Return a DuckDB of its own that reaches nothing."""
    connection = duckdb().connect(":memory:", config=_CONFIG)
    for setting in _SETTINGS:
        connection.execute(setting)
    return connection


parser = functools.cache(connected)
"""Returns the DuckDB that parses, and sees no row."""


def parsed_text(asked: str, given: str) -> str:
    """Return what a function of the parser makes of a text."""
    [[made]] = parser().cursor().execute(asked, [given]).fetchall()
    return str(made)


@functools.cache
def functions_of(*kinds: str) -> frozenset[str]:
    """Return the names of all functions of some kinds that DuckDB has."""
    asked = "SELECT function_name FROM duckdb_functions() WHERE function_type IN ?"
    return frozenset(name for [name] in parser().cursor().execute(asked, [[*kinds]]).fetchall())
