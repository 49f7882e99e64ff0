"""The table of constants says what the code has."""

import importlib
import re
from fractions import Fraction
from typing import Any

from tests import pages

ROW = re.compile(r"^\| (?:`([\w/]+)\.py`)? *\| (`\w+=.*?`) \| .+ \| .+ \|$", re.MULTILINE)


def numbers(value: Any) -> list[str]:
    """Return one number or several with four digits, as `_RARER` needs."""
    return [f"{float(each):.4g}" for each in (value if isinstance(value, tuple) else [value])]


def test_every_constant_has_the_value_that_is_listed() -> None:
    module, listed = "", 0
    page = pages.read("docs/maintainers/measuring.md")
    for path, constants in ROW.findall(page):
        module = path or module
        home = importlib.import_module("beam_dp." + module.replace("/", "."))
        for name, shown in re.findall(r"`(\w+)=(.*?)`", constants):
            parts = tuple(Fraction(part) for part in shown.split(","))
            assert numbers(getattr(home, name)) == numbers(parts), (module, name)
            listed += 1
    assert listed == len(re.findall(r"`\w+=", page)) > 70
