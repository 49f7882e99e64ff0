"""The house has floors: each package of the mathematics stands on those below it only."""

import ast
import collections
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MECHANISMS = ROOT / "beam_dp/mechanisms"
FLOORS = (
    "numerics",
    "accounting",
    "candidates",
    "optimization",
    "bounding",
    "noise",
    "clips",
    "reach",
    "summaries",
    "profiles",
    "ratio",
    "search",
    "preprocessing",
    "releases",
    "metrics",
    "sensitivity",
    "planning",
)
"""From the ground up: a package imports from itself and from packages before it."""

MOST_MODULES = 11
LIBRARY = sorted(path for path in ROOT.glob("beam_dp/**/*.py") if path.name != "__init__.py")
PACKAGES = sorted({path.parent for path in LIBRARY})
ONE_IDEA = {
    "base.py",  # what all mechanisms of a ratio, and all metrics, have
    "block_votes.py",  # of black boxes: the lines, and the step that asks the function
    "clipped.py",  # a clip and noise: what metrics request, and the release
    "columns.py",  # what is read: the record of a column, and those of a program
    "monotone.py",  # statistics: their profile by search, and the check of the claim
    "person_epsilon.py",  # everybody's own epsilon: lines, metric, release
    "ratio.py",  # the metric and its release
    "shifted_inverse.py",  # the release and its transform
}
"""The names of files that stand twice, for the same idea on two floors."""
TWICE = {"Released"}  # what was released: of one metric as numbers, and of all as a table
"""The public classes that stand twice, for the same idea on two floors."""

TESTED_IN = {
    "beam_yaml/__main__.py": "beam_yaml/test_private_transforms.py",
    "mechanisms/candidates/grids.py": "mechanisms/candidates/test_candidates.py",
    "mechanisms/numerics/numbers.py": "mechanisms/candidates/test_candidates.py",
    "mechanisms/preprocessing/error_bounds.py": "mechanisms/preprocessing/test_functions.py",
    "mechanisms/preprocessing/order_statistics.py": "mechanisms/preprocessing/test_groups.py",
    "mechanisms/preprocessing/sketch.py": "mechanisms/preprocessing/test_groups.py",
    "mechanisms/releases/individual/weighted_median.py": "audit/test_weighted_audit.py",
    "mechanisms/search/common.py": "mechanisms/search/test_above_threshold.py",
    "mechanisms/search/stop_chances.py": "mechanisms/search/published/test_unbounded.py",
    "mechanisms/sensitivity/norms.py": "mechanisms/sensitivity/test_gradient.py",
    "mechanisms/sensitivity/rules.py": "mechanisms/sensitivity/test_gradient.py",
    "mechanisms/summaries/person_epsilon.py": "mechanisms/releases/individual/test_person_epsilon.py",
    "mechanisms/summaries/person_value.py": "transforms/columns/test_row_order.py",
    "testing/counterexample.py": "testing/test_testing.py",
    "testing/neighbours.py": "testing/test_testing.py",
    "transforms/select.py": "transforms/steps/test_guards.py",
}
"""Modules that no test imports, with the file that tests them by what is built on them."""


def named(path: Path) -> str:
    """Return a path as pytest shows it."""
    return str(path.relative_to(ROOT))


def floors_of(source: str) -> set[str]:
    """Return the packages of the mathematics that a source imports from."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    words = [name.split(".") for name in names if name.startswith("beam_dp.mechanisms.")]
    return {word[2] for word in words}


def test_every_package_of_the_mathematics_has_its_floor() -> None:
    packages = {path.relative_to(MECHANISMS).parts[0] for path in MECHANISMS.glob("*/**/*.py")}
    assert packages == set(FLOORS)
    assert [path.name for path in MECHANISMS.glob("*.py")] == ["__init__.py"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("floor", FLOORS)
def test_imports_run_one_way_between_packages(floor: str) -> None:
    allowed = set(FLOORS[: FLOORS.index(floor) + 1])
    for path in sorted((MECHANISMS / floor).rglob("*.py")):
        assert floors_of(path.read_text(encoding="utf-8")) <= allowed, named(path)


@pytest.mark.parametrize("package", PACKAGES, ids=named)
def test_no_package_is_a_drawer(package: Path) -> None:
    modules = [path.name for path in package.glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MOST_MODULES


def test_no_public_class_stands_twice() -> None:
    places = collections.defaultdict(list)
    for path in LIBRARY:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(named(path))
    assert {name for name, paths in places.items() if len(paths) > 1} == TWICE


def test_no_file_name_stands_twice_but_for_one_idea() -> None:
    counts = collections.Counter(path.name for path in LIBRARY)
    assert {name for name, count in counts.items() if count > 1} == ONE_IDEA


def test_every_module_has_the_test_file_of_its_name_or_is_imported_by_one() -> None:
    imported: set[str] = set()
    for path in ROOT.glob("tests/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                imported |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    untested = set()
    for path in LIBRARY:
        inside = path.relative_to(ROOT / "beam_dp")
        mirrored = ROOT / "tests" / inside.parent / f"test_{path.name}"
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if not mirrored.exists() and module not in imported:
            untested.add(inside.as_posix())
    assert untested == set(TESTED_IN)
    assert [file for file in TESTED_IN.values() if not (ROOT / "tests" / file).exists()] == []


def test_the_test_of_floors_notices() -> None:
    assert floors_of("def f():\n    from beam_dp.mechanisms.planning import x") == {"planning"}
    assert floors_of("from beam_dp.mechanisms import ratio, search") == {"ratio", "search"}
    assert floors_of("import beam_dp.mechanisms.noise.tails") == {"noise"}
    assert floors_of("from beam_dp.transforms import x\nimport numpy") == set()
