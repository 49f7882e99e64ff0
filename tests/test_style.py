"""The rules of style that a machine can hold, over everything that is shipped."""

import ast
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "beam_dp"
SOURCES = sorted([*ROOT.glob("beam_dp/**/*.py"), *ROOT.glob("pipelines/**/*.py")])
MARKERS = re.compile(
    r"TODO|FIXME|XXX|type: ?ignore|noqa|pragma: no cover|NotImplementedError|assert True"
)
NOISY_MODULES = {"random", "logging", "warnings", "secrets"}
MAY_USE = {
    ROOT / "beam_dp/lazy_names.py": {"logging"},
    ROOT / "beam_dp/transforms/known_columns.py": {"warnings"},
    ROOT / "beam_dp/transforms/rehearsal.py": {"warnings"},
    ROOT / "beam_dp/transforms/stages/noise_off.py": {"warnings"},
    ROOT / "beam_dp/transforms/stages/guards.py": {"warnings"},
    ROOT / "beam_dp/results/release.py": {"logging"},
}
"""The files that warn, when a pipeline is built or tried, in words of parameters, or hold such a
warning back; and those that hold back Beam's log: a remark of its import, and what quotes elements."""
PLACES = re.compile("/" + "work|shared/" + "guide")
SKIPPED = {".git", "build", "dist", "tests", "__pycache__"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def named(path: Path) -> str:
    """Return a path as it is shown."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


@functools.cache
def tree(path: Path) -> ast.Module:
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


def unannotated(function: Function) -> list[str]:
    """Return the parameters without a type, and "return"."""
    given = function.args
    first = given.posonlyargs + given.args
    if first and first[0].arg in ("self", "cls"):
        first = first[1:]
    several = [argument for argument in (given.vararg, given.kwarg) if argument]
    missing = [a.arg for a in [*first, *given.kwonlyargs, *several] if a.annotation is None]
    return missing + (["return"] if function.returns is None else [])


def broad(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler catches everything."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException"))
        for kind in kinds
    )


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def faults(rule: Callable[[Path], object], paths: Sequence[Path] = SOURCES) -> dict[str, object]:
    """Return what a rule finds wrong, by file."""
    return {named(path): found for path in paths if (found := rule(path))}


def unexplained(path: Path) -> list[str]:
    """Return what has no docstring, and public functions whose types are not said."""
    module = tree(path)
    names = list(public_names(module))
    documented = [each for each in (module, *names) if not is_short(each)]
    silent = [each for each in documented if not ast.get_docstring(each)]
    functions = [name for name in names if isinstance(name, Function)]
    untyped = [function for function in functions if unannotated(function)]
    return [getattr(each, "name", "the module") for each in (*silent, *untyped)]


def unfinished(path: Path) -> list[object]:
    """Return marks of what is left undone or suppressed, and lines that catch everything."""
    handlers = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ExceptHandler)]
    return [*MARKERS.findall(text(path)), *(each.lineno for each in handlers if broad(each))]


def words_of_import(node: ast.AST) -> set[str]:
    """Return the first words of the modules that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    return {(node.module or "").split(".")[0]} if isinstance(node, ast.ImportFrom) else set()


def noises(path: Path) -> list[str]:
    """Return what prints, logs, warns, runs text or draws, where a file must not."""
    noisy = NOISY_MODULES - MAY_USE.get(path, set())
    found: list[str] = []
    for node in ast.walk(tree(path)):
        found += words_of_import(node) & noisy
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found += {node.func.id} & {"print", "breakpoint", "eval", "exec"}
        if isinstance(node, ast.Attribute):
            found += {ast.unparse(node)} & {"np.random", "numpy.random"}
            found += {node.attr} & ({"urandom"} if path.name != "sampling.py" else set())
    return found


def test_public_names_say_what_they_are():
    assert faults(unexplained) == {}


def test_nothing_is_left_undone_suppressed_or_swallowed():
    assert faults(unfinished) == {}


def test_the_library_prints_and_logs_nothing_and_draws_in_one_place():
    assert faults(noises, [path for path in SOURCES if path.is_relative_to(LIBRARY)]) == {}


NOISY = """
import logging.handlers, random
from warnings import warn
print(eval("1"), np.random.default_rng(), os.urandom(8))
"""


def test_the_rules_of_a_file_notice(tmp_path):
    path = tmp_path / "made.py"
    path.write_text(NOISY + "def f(a):\n    a = 1  # TODO\n")
    assert unexplained(path) == ["the module", "f", "f"]
    assert unfinished(path) == ["TODO"]
    words = ["eval", "logging", "np.random", "print", "random", "urandom", "warnings"]
    assert sorted(noises(path)) == words
    assert set(faults(noises, [path])) == {named(path)}


def test_no_file_knows_where_it_was_written():
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        hidden = [part for part in parts if part.startswith(".") and part not in (".ci", ".github")]
        skipped = set(parts) & SKIPPED or any(part.endswith(".egg-info") for part in parts)
        if path.is_file() and not skipped and (len(parts) == 1 or not hidden):
            text = path.read_bytes().decode("utf-8", errors="ignore")
            assert not PLACES.search(text), named(path)


def test_the_tests_of_names_and_handlers_notice():
    source = "def f(a, *b, c: int):\n    try:\n        g()\n    except (ValueError, Exception):\n        h()\n"
    [function] = public_names(ast.parse(source))
    assert unannotated(function) == ["a", "b", "return"]
    assert not is_short(function) and is_short(ast.parse("def f(a): return a").body[0])
    [handler] = [node for node in ast.walk(function) if isinstance(node, ast.ExceptHandler)]
    assert broad(handler)
