"""The house has floors: each package of the mathematics stands on those below it only."""

import ast
import collections
import re

import pytest

from tests import pages
from tests.test_imports import ROOT, imported, named

MECHANISMS = ROOT / "beam_dp/mechanisms"
PICTURE = pages.read("docs/maintainers/architecture.md").split("```")[1]
FLOORS = re.findall(r"^  (\w+) ", PICTURE.partition("beam_dp/transforms/")[0], re.MULTILINE)
"""From the ground up, as the page draws them: each imports from itself and from those before it."""

LIBRARY = sorted(path for path in ROOT.glob("beam_dp/**/*.py") if path.name != "__init__.py")
TWICE = {"Released"}  # what was released: of one metric as numbers, and of all as a table
"""The public classes that stand twice, for the same idea on two floors."""


def floors_of(source: str) -> set[str]:
    """Return the packages of the mathematics that a source imports from."""
    names = [name.split(".") for name in imported(source)]
    return {words[2] for words in names if words[:2] == ["beam_dp", "mechanisms"] and words[2:]}


def test_every_package_of_the_mathematics_has_its_floor():
    packages = {path.relative_to(MECHANISMS).parts[0] for path in MECHANISMS.glob("*/**/*.py")}
    assert packages == set(FLOORS)
    assert [path.name for path in MECHANISMS.glob("*.py")] == ["__init__.py"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("floor", FLOORS)
def test_imports_run_one_way_between_packages(floor):
    allowed = {*FLOORS[: FLOORS.index(floor) + 1]}
    for path in sorted((MECHANISMS / floor).rglob("*.py")):
        assert floors_of(path.read_text(encoding="utf-8")) <= allowed, named(path)


def test_no_public_class_stands_twice():
    places = collections.defaultdict(list)
    for path in LIBRARY:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(named(path))
    assert {name for name, paths in places.items() if len(paths) > 1} == TWICE


def test_no_file_name_stands_twice():
    counts = collections.Counter(path.name for path in LIBRARY)
    assert {name for name, count in counts.items() if count > 1} == set()
