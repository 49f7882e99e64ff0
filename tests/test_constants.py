"""The table of constants says what the code has."""

import importlib
import re
from fractions import Fraction
from typing import Any

from tests import pages
from tests.pages import ROOT

CONSTANT = re.compile(r"`([\w/]+)\.(\w+)=([^`]+)`")


def numbers(value: Any) -> list[str]:
    """Return one number or several with four digits, as `_RARER` needs."""
    return [f"{float(each):.4g}" for each in (value if isinstance(value, tuple) else [value])]


def test_every_constant_has_the_value_that_is_listed():
    listed = CONSTANT.findall(pages.read("docs/maintainers/measuring.md"))
    assert len(set(listed)) == len(listed) > 70
    for file, name, shown in listed:
        [path] = ROOT.glob(f"beam_dp/**/{file}.py")
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        parts = tuple(Fraction(part) for part in shown.split(","))
        assert numbers(getattr(module, name)) == numbers(parts), (file, name)
