"""Imports run one way: pipelines, then transforms, then mechanisms, which know nothing of Beam."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MECHANISMS, TRANSFORMS = "beam_dp/mechanisms", "beam_dp/transforms"
MAY_IMPORT = {
    # `from beam_dp.mechanisms import x` names the package beam_dp.mechanisms, never beam_dp.
    MECHANISMS: {"beam_dp.mechanisms", "highspy", "numpy", "scipy"},
    "beam_dp/text": {"beam_dp.mechanisms", "beam_dp.text", "numpy"},
    TRANSFORMS: {
        *("beam_dp.mechanisms", "beam_dp.text", "beam_dp.transforms"),
        *("apache_beam", "numpy", "pyarrow"),
    },
    "beam_dp/spending": {
        *("beam_dp.mechanisms", "beam_dp.text", "beam_dp.spending"),
        *("boto3", "botocore", "filelock", "google"),
    },
    "beam_dp/results": {
        *("beam_dp.mechanisms", "beam_dp.text", "beam_dp.transforms"),
        *("beam_dp.results", "beam_dp.spending"),
        *("apache_beam", "numpy", "pyarrow", "jinja2", "markupsafe", "yaml"),
    },
    "beam_dp/testing/losses": {"beam_dp.mechanisms", "beam_dp.testing.losses", "numpy"},
    "beam_dp/testing": {
        *("beam_dp.mechanisms", "beam_dp.transforms", "beam_dp.results", "beam_dp.testing"),
        *("apache_beam", "numpy", "pyarrow"),
    },
    "beam_dp/beam_yaml": {
        *("beam_dp.mechanisms", "beam_dp.transforms", "beam_dp.beam_yaml", "beam_dp.results"),
        *("apache_beam", "numpy"),
    },
    "pipelines": {"beam_dp", "apache_beam", "numpy", "pyarrow", "pipelines", "yaml"},
}
"""What the files of a folder may import beside the standard library."""


def files(folder: str) -> list[Path]:
    """Return the sources in a folder."""
    return sorted((ROOT / folder).glob("**/*.py"))


def imported(source: str) -> set[str]:
    """Return the modules that a source imports, at its top or anywhere inside."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def outside(modules: set[str], allowed: tuple[str, ...]) -> set[str]:
    """Return the modules that are neither of the standard library nor inside the allowed ones."""
    return {
        name
        for name in modules
        if name.split(".")[0] not in sys.stdlib_module_names
        and not any(name == one or name.startswith(one + ".") for one in allowed)
    }


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def imported_by(path: Path) -> set[str]:
    """Return the modules that a file imports."""
    return imported(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_stands_on_what_it_may_import(folder):
    allowed = tuple(MAY_IMPORT[folder])
    wrong = {named(path): outside(imported_by(path), allowed) for path in files(folder)}
    assert wrong and {path: modules for path, modules in wrong.items() if modules} == {}


def test_mechanisms_can_be_imported_without_beam():
    # beam_dp/__init__.py offers the transforms too, so the package is given an empty one here.
    names = [
        named(path)[:-3].replace("/", ".")
        for path in files(MECHANISMS)
        if path.name != "__init__.py"
    ]
    program = (
        "import importlib, sys, types\n"
        "package = types.ModuleType('beam_dp')\n"
        f"package.__path__ = [{str(ROOT / 'beam_dp')!r}]\n"
        "sys.modules['beam_dp'] = package\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "assert not [name for name in sys.modules if name.startswith(('apache_beam', 'pyarrow'))]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.audit
def test_a_job_makes_columns_without_pandas_until_somebody_asks_for_it():
    """And a collector that was off stays off."""
    program = (
        "import gc, sys; sys.argv[0] = 'beam-dp aggregate'; gc.disable(); import pipelines, pyarrow\n"
        "assert not gc.isenabled() and gc.get_freeze_count() > 100_000\n"
        "table = pyarrow.table({'day': pyarrow.array([1])}); assert 'pandas' not in sys.modules\n"
        "assert table.to_pandas().day[0] == 1 and 'pandas' in sys.modules"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, timeout=60, cwd=ROOT, capture_output=True)
    assert done.stderr == b""


def test_a_plan_loads_nothing_that_only_runs_need():
    """The ledger's lock, and what Beam loads for others: a quarter of the start."""
    words = "--plan --input x.csv --output y.csv --person a --count --sum spent --epsilon 1"
    command = [sys.executable, "-X", "importtime", "-m", "pipelines.aggregate", *words.split()]
    done = subprocess.run(command, check=True, timeout=60, cwd=ROOT, capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    loaded = {line.split("|")[-1].strip() for line in lines}
    assert len(lines) == len(done.stderr.splitlines()) and "apache_beam" in loaded
    assert loaded.isdisjoint({"filelock", "pandas.core", "pymongo", "scipy"})
    assert done.stdout.startswith("metric ")


def test_no_module_imports_itself_in_a_circle():
    graph = {
        named(path)[:-3].replace("/", ".").removesuffix(".__init__"): imported_by(path)
        for folder in MAY_IMPORT
        for path in files(folder)
    }
    graph = {name: (modules & graph.keys()) - packages(name) for name, modules in graph.items()}
    while leaves := {name for name, modules in graph.items() if not modules & graph.keys()}:
        graph = {name: modules for name, modules in graph.items() if name not in leaves}
    assert graph == {}


def packages(name: str) -> set[str]:
    """Return a module and the packages around it."""
    parts = name.split(".")
    return {".".join(parts[: n + 1]) for n in range(len(parts))}


def test_the_test_of_imports_notices():
    assert outside(imported("import apache_beam as beam"), ("numpy",)) == {"apache_beam"}
    assert outside(imported("def f():\n    from beam_dp.transforms import x"), ("numpy",))
    assert outside(imported("import os, numpy.linalg"), ("numpy",)) == set()
