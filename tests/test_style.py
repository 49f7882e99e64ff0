"""The rules of style that a machine can hold, over everything that is shipped."""

import ast
import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "beam_dp"
SOURCES = sorted([*ROOT.glob("beam_dp/**/*.py"), *ROOT.glob("pipelines/**/*.py")])
MARKERS = re.compile(
    r"TODO|FIXME|XXX|type: ?ignore|noqa|pragma: no cover|NotImplementedError|assert True"
)
NOISY = re.compile(
    r"(?:(?<=import )|(?<=from ))(?:random|logging|warnings|secrets|urandom)\b"
    r"|\b(?:np|numpy)\.random\b|\bos\.urandom\b"
)
MAY_USE = {
    ROOT / "beam_dp/lazy_names.py": {"logging"},
    ROOT / "beam_dp/mechanisms/noise/sampling.py": {"os.urandom"},
    ROOT / "beam_dp/transforms/known_columns.py": {"warnings"},
    ROOT / "beam_dp/transforms/rehearsal.py": {"warnings"},
    ROOT / "beam_dp/transforms/stages/noise_off.py": {"warnings"},
    ROOT / "beam_dp/transforms/stages/guards.py": {"warnings"},
    ROOT / "beam_dp/results/release.py": {"logging"},
    ROOT / "beam_dp/testing/forced_draws.py": {"np.random", "warnings"},
    ROOT / "beam_dp/testing/losses/draw_costs.py": {"np.random"},
    ROOT / "beam_dp/testing/made_rows.py": {"np.random"},
}
"""The file that draws; those that warn, when a pipeline is built or tried, in words of parameters, or
hold such a warning back; those that hold back Beam's log: a remark of its import, quoted elements;
those that draw from seeds, for audits."""
PLACES = re.compile("/" + "work|shared/" + "guide")
SKIPPED = {".git", "build", "dist", "tests", "__pycache__"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def named(path: Path) -> str:
    """Return a path as it is shown."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


@functools.cache
def tree(path: Path) -> ast.Module:
    # Before Python 3.11.8, threads that parse at the same time disturb each other (gh-106905).
    with contextlib.suppress(SystemError):
        return ast.parse(text(path))
    return ast.parse(text(path))


def is_short(node: ast.AST) -> bool:
    """Return whether a node is a function that only returns something: its name explains it."""
    return isinstance(node, Function) and [type(each) for each in node.body] == [ast.Return]


def public_names(node: ast.AST) -> Iterator[Function | ast.ClassDef]:
    """Return public classes, functions and methods (none of a private class or function)."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef) and not child.name.startswith("_"):
            yield child
            if isinstance(child, ast.ClassDef):
                yield from public_names(child)


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def faults(rule: Callable[[Path], object], paths: Sequence[Path] = SOURCES) -> dict[str, object]:
    """Return what a rule finds wrong, by file."""
    return {named(path): found for path in paths if (found := rule(path))}


def unexplained(path: Path) -> list[str]:
    """Return what has no docstring."""
    module = tree(path)
    names = list(public_names(module))
    documented = [each for each in (module, *names) if not is_short(each)]
    silent = [each for each in documented if not ast.get_docstring(each)]
    return [getattr(each, "name", "the module") for each in silent]


def unfinished(path: Path) -> list[str]:
    """Return marks of what is left undone or suppressed."""
    return MARKERS.findall(text(path))


def noises(path: Path) -> list[str]:
    """Return what logs, warns or draws, where a file must not."""
    return sorted(set(NOISY.findall(text(path))) - MAY_USE.get(path, set()))


def test_public_names_say_what_they_are():
    assert faults(unexplained) == {}


def test_nothing_is_left_undone_suppressed_or_swallowed():
    assert faults(unfinished) == {}


def test_the_library_prints_and_logs_nothing_and_draws_in_one_place():
    assert faults(noises, [path for path in SOURCES if path.is_relative_to(LIBRARY)]) == {}


def test_the_rules_of_a_file_notice(tmp_path):
    path = tmp_path / "made.py"
    imports = "import logging.handlers\nimport random\nfrom warnings import warn\n"
    path.write_text(imports + "def f(a):\n    a = np.random, os.urandom  # TODO\n")
    assert unexplained(path) == ["the module", "f"] and unfinished(path) == ["TODO"]
    assert noises(path) == ["logging", "np.random", "os.urandom", "random", "warnings"]
    assert set(faults(noises, [path])) == {named(path)}
    assert is_short(ast.parse("def f(a): return a").body[0])


def test_no_file_knows_where_it_was_written():
    for folder, folders, files in os.walk(ROOT):
        left_out = {each for each in folders if each.startswith(".") or each.endswith(".egg-info")}
        folders[:] = {*folders} - (left_out - {".ci", ".github"}) - SKIPPED
        for path in (Path(folder, name) for name in {*files} - SKIPPED):
            text = path.read_bytes().decode("utf-8", errors="ignore")
            assert not PLACES.search(text), named(path)


PRIVATE_WORDS = {
    *("reach", "depth", "told", "foresee", "sight", "sights", "hopeless", "straying", "strays"),
    *("stray", "mend", "mended", "price", "prices", "pooled", "walk", "walks", "looks", "looked"),
}
"""Words that the glossary has replaced by those of the field."""
ORDINARY = {("sampling.py", "depth"), ("lazy_names.py", "walk")}
"""A depth of bits; `ast.walk`."""
PUBLIC_WORDS = {
    *("max_partitions", "max_rows_per_partition", "tail_bound", "hint", "subject"),
    *("ClippingLoss", "JointNoise", "SparseVectorScan", "SuppressUnreliable"),
}
"""The terms of papers and of the large libraries that name what this library has, too."""


def identifiers(path: Path) -> Iterator[str]:
    """Return every name of a file: of classes, functions, arguments, variables and attributes."""
    for node in ast.walk(tree(path)):
        for part in ("id", "attr", "arg", "name"):
            if isinstance(name := getattr(node, part, None), str):
                yield name


def private_words(path: Path) -> set[str]:
    """Return the words of names that are not the field's."""
    parts = {part for name in identifiers(path) for part in name.lower().split("_")}
    return {w for w in parts & PRIVATE_WORDS if (path.name, w) not in ORDINARY}


def test_names_are_of_the_fields_words(tmp_path):
    assert faults(private_words) == {}
    path = tmp_path / "made.py"
    path.write_text("def f(reach):\n    return reach.most_stray\n")
    assert private_words(path) == {"reach", "stray"}
    names = {name for path in SOURCES for name in identifiers(path)}
    assert names >= PUBLIC_WORDS


def test_the_glossary_has_the_words_of_public_names():
    glossary = text(ROOT / "docs/glossary.md").lower()
    for word in ("max_partitions", "tail bound", "joint noise", "clipping loss", "suppress"):
        assert f"### {word}\n" in glossary
