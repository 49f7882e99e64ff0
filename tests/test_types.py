"""What type checkers see: of this package, for who installs it, and of Beam, for ourselves.

That the sources themselves are clean is the business of `make lint`.
"""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

ROOT = Path(__file__).resolve().parents[1]
TYPINGS = ROOT / "typings"
STUBS = sorted(TYPINGS.glob("**/*.pyi"))
CALLS = """
import apache_beam as beam

import beam_dp as dp


def build(pipeline: beam.Pipeline) -> None:
    rows = pipeline | "Read" >> dp.ReadRows("visits.csv", ["visitor", "day", "minutes"])
    bounds, budget = dp.ContributionBounds(partitions=3), dp.Budget(epsilon=1.0, delta=1e-6)
    metrics = [dp.Count(), dp.Sum("minutes"), dp.Quantile("minutes", 0.9)]
    release = dp.PrivateAggregate("visitor", metrics, budget, ["day"], bounds=bounds)
    _ = rows | "Release" >> release | "Write" >> dp.WriteRows("released.csv")
    print(release.plan())


dp.Budget(epsilon="1")  # wrong
dp.PrivateAggregate("visitor", dp.Count(), dp.Budget(1))  # wrong
dp.PrivateAggregate("visitor", [dp.Count()], 1.0)  # wrong
dp.PrivateAggregate("visitor", [dp.Count()], dp.Budget(1), bounds=3)  # wrong
dp.Count(weight="two")  # wrong
numbers = beam.Pipeline() | "Numbers" >> beam.Create([1, 2])
_ = numbers | "Double" >> beam.Map(lambda number: 2 * number)
_ = numbers | "Length" >> beam.Map(len)  # wrong
_ = numbers | "Group" >> beam.GroupByKey()  # wrong
"""


def test_an_installed_copy_says_that_it_has_types(monkeypatch):
    monkeypatch.chdir(ROOT)
    declared = re.search(
        r"package_data=(\{.*?\}),\n", (ROOT / "setup.py").read_text("utf-8"), re.DOTALL
    )
    assert declared is not None
    command = build_py(
        Distribution({"packages": ["beam_dp"], "package_data": ast.literal_eval(declared[1])})
    )
    command.ensure_finalized()
    [(_, _, _, files)] = command.data_files
    assert "py.typed" in files and {"results/report.html", "results/report.js"} <= set(files)


@pytest.mark.audit
def test_a_wrong_argument_is_found_and_a_right_one_is_not(tmp_path):
    (tmp_path / "calls.py").write_text(CALLS, encoding="utf-8")
    settings = f"[mypy]\nmypy_path = {ROOT}:{TYPINGS}\nignore_missing_imports = true\n"
    (tmp_path / "mypy.ini").write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "mypy.ini", "calls.py"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = re.findall(r"^calls\.py:(\d+): error", checked.stdout, re.MULTILINE)
    wrong = [n for n, line in enumerate(CALLS.splitlines(), 1) if line.endswith("# wrong")]
    assert sorted({int(number) for number in found}) == wrong, checked.stdout + checked.stderr


def written(body: list[ast.stmt], of: object) -> Iterator[tuple[object, ast.stmt]]:
    """Yield what a stub says of a module or class, beside what Beam has under that name."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            known = getattr(of, node.name)
            yield known, node
            if isinstance(node, ast.ClassDef):
                yield from written(node.body, known)
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert not alias.asname or hasattr(of, alias.name), alias.name


@pytest.mark.parametrize("path", STUBS, ids=lambda path: str(path.relative_to(TYPINGS)))
def test_beam_has_what_is_written_of_it(path):
    name = ".".join(path.relative_to(TYPINGS).with_suffix("").parts).removesuffix(".__init__")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for known, node in written(tree.body, importlib.import_module(name)):
        assert callable(known) or isinstance(known, property), node
        if isinstance(node, ast.FunctionDef) and callable(known):
            parameters = inspect.signature(known).parameters.values()
            names = {parameter.name for parameter in parameters}
            several = any(one.kind is one.VAR_KEYWORD for one in parameters)
            given = {arg.arg for arg in [*node.args.args, *node.args.kwonlyargs]}
            assert several or given - {"self", "cls"} <= names, node.name
