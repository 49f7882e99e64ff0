"""Names of the library that are loaded at their first use are public names like all others."""

import ast
import importlib
import logging
import re
import subprocess
import sys
from pathlib import Path

import beam_dp as dp
from beam_dp import lazy_names

ROOT = Path(__file__).resolve().parents[1]


def test_every_name_that_types_see_is_loaded_from_its_module():
    module = ast.parse((ROOT / "beam_dp/__init__.py").read_text())
    [later] = [node for node in module.body if isinstance(node, ast.If)]
    places = {}
    for node in later.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name, "types see what is exported by name"
            places[alias.name] = str(node.module)
    assert places.pop("testing") == "beam_dp"
    assert len(places) > 40 and dp.__all__ == ["__version__", *sorted(places)]
    for name, place in places.items():
        assert getattr(dp, name) is getattr(importlib.import_module(place), name)
    assert {*places, "testing", "mechanisms", "transforms"} <= set(dir(dp))


def test_an_import_loads_no_beam_and_a_use_does_without_a_word_and_a_star_gives_what_is_public():
    program = [
        "import logging, sys, beam_dp as dp",
        "assert not {'apache_beam', 'numpy', 'pyarrow'} & set(sys.modules)",
        "assert {'testing', 'PrivateRatio', 'Monotone', 'Count'} <= set(dir(dp))",
        "dp.Candidates, dp.Budget(1.0), dp.AboveThreshold",
        "assert not {'apache_beam', 'pyarrow', 'beam_dp.testing'} & set(sys.modules)",
        "import gc; dp.Released, dp.release; import pipelines.aggregate",
        "assert gc.isenabled() and gc.get_freeze_count() > 100_000",
        # Every job of a second would pay a third of one for these; what draws, a page asks for.
        "assert not {'scipy', 'matplotlib', 'jinja2', 'polars'} & set(sys.modules)",
        "from apache_beam.io import mongodbio",
        "assert mongodbio.MongoClient is not None",
        "assert {'bson', 'pandas'}.isdisjoint(name for name, module in sys.modules.items() if not module)",
        "from beam_dp import PrivateRatio, testing",
        "assert dp.testing.check_monotone is testing.check_monotone",
        "assert dp.PrivateRatio is PrivateRatio and 'PrivateRatio' in vars(dp)",
        "assert dp.transforms.partitions.PublicPartitions is dp.PublicPartitions",
        "assert {'apache_beam', 'apache_beam.io.gcp.bigquery'} <= set(sys.modules)",
        "assert not logging.root.handlers and not logging.root.filters",
        "logging.basicConfig(format='mine %(message)s')",
        "logging.warning('apitools not found, says somebody else')",
        "exec('from beam_dp import *', public := {})",
        "assert public['Budget'](1).amount == 1 and {'PrivateAggregate', '__version__'} <= {*public}",
        "assert not {'lazy_names', 'typing'} & {*public}",
    ]
    call = [sys.executable, "-c", "\n".join(program)]
    ran = subprocess.run(call, check=False, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == "mine apitools not found, says somebody else\n"


def test_the_version_is_that_of_the_package():
    setup = (ROOT / "setup.py").read_text()
    assert "version=VERSION," in setup and "__init__.py" in setup
    assert re.fullmatch(r"\d+\.\d+\.\d+", dp.__version__) and "__version__" in dp.__all__
    source = (ROOT / "beam_dp/__init__.py").read_text()
    assert re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE) == [dp.__version__]


def test_handlers_of_a_program_stay_and_hear_the_rest(caplog):
    before, log = list(logging.root.handlers), logging.getLogger(__name__)
    with lazy_names.without_remarks():
        log.warning("apitools not found, and more")
        logging.root.addHandler(logging.NullHandler())
    log.warning("loaded")
    assert caplog.messages == ["loaded"]
    assert logging.root.handlers == before and not logging.root.filters
