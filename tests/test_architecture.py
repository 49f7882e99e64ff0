"""The pages on the architecture and on proofs name what there is: packages, files, functions."""

import re
from pathlib import Path

from tests.test_floors import FLOORS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/maintainers/architecture.md").read_text(encoding="utf-8")
PROOFS = (ROOT / "docs/maintainers/proofs.md").read_text(encoding="utf-8")
PATHS = re.findall(r"`([\w./]+(?:\.py|/))`", PAGE + PROOFS)


def exists(path: str) -> bool:
    beside = [ROOT / "beam_dp" / "transforms" / "io" / path]
    return any(place.exists() for place in (ROOT / path, ROOT / "beam_dp" / path, *beside))


def test_the_floors_are_those_that_imports_are_held_to() -> None:
    picture = PAGE.split("```")[1].split("beam_dp/transforms/")[0]
    assert tuple(re.findall(r"^  (\w+) ", picture, re.MULTILINE)) == FLOORS


def test_every_file_that_is_named_exists() -> None:
    assert len(PATHS) > 60
    assert [path for path in PATHS if not exists(path)] == []


def test_what_protects_a_person_is_where_the_pages_say() -> None:
    for name, path in (
        ("def settle(", "mechanisms/bounding/bounder.py"),
        ("getrandom|urandom|randbits|SystemRandom", "mechanisms/noise/sampling.py"),
        (r"check_total\(composed, entries\)", "mechanisms/planning/program.py"),
        ("GroupByKey", "transforms/stages/draw_once.py"),
    ):
        assert re.search(
            name.replace("settle(", r"settle\("), (ROOT / "beam_dp" / path).read_text()
        )
