"""The lines of a ledger: read as they were written, refused if a character was changed."""

import itertools
import json

import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.accounting.composition import Cost
from beam_dp.spending import ledger_lines
from beam_dp.spending.ledger_lines import Charge, Terms, read, today, written

TERMS = Terms(Budget(3, 1e-6), planned=False, date=today())
COSTS = (
    Cost(Budget(1, 1e-9), ((Budget(0.1, 1e-10), 10),)),
    Cost(Budget.zcdp(0.1), ()),
)
LABELS, PEOPLE = ("visits per day", 'ä "quoted" \u2028'), (("guest", "höst"), ())
CHARGES = tuple(
    Charge(label, "ann", today(), cost, person)
    for label, cost, person in zip(LABELS, COSTS, PEOPLE, strict=True)
)
TEXT = written(TERMS, CHARGES)
LINES = TEXT.splitlines(keepends=True)


def refused(text: str) -> str:
    with pytest.raises(ValueError, match="Nothing is charged") as raised:
        read("l.jsonl", text)
    return str(raised.value)


def test_a_file_is_read_as_it_was_written() -> None:
    assert read("l.jsonl", TEXT) == (TERMS, CHARGES)
    assert TEXT.isascii() and len(LINES) == 3


def test_every_changed_character_is_noticed() -> None:
    for place in range(0, len(TEXT), 3):
        other = "0" if TEXT[place] != "0" else "1"
        changed = TEXT[:place] + other + TEXT[place + 1 :]
        assert "is damaged" in refused(changed)


@pytest.mark.parametrize("cut", range(1, len(TEXT), 37))
def test_a_file_that_ends_early_within_a_line_is_damaged(cut: int) -> None:
    if not TEXT[:cut].endswith("\n"):
        assert f"line {TEXT[:cut].count(chr(10)) + 1} of l.jsonl" in refused(TEXT[:cut])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3)))[1:], ids=str)
def test_lines_that_change_places_are_noticed(order: tuple[int, ...]) -> None:
    refused("".join(LINES[place] for place in order))


def test_a_lost_and_a_doubled_line_are_noticed() -> None:
    assert "line 2" in refused(LINES[0] + LINES[2])
    assert "line 3" in refused(LINES[0] + LINES[1] + LINES[1] + LINES[2])
    assert "line 1" in refused(LINES[1] + LINES[2])


@pytest.mark.parametrize(
    "text", ["", "\n", "null\n", "[]\n", "{}\n", "\ufffd\n", "[" * 9999 + "\n"]
)
def test_what_is_no_ledger_is_refused(text: str) -> None:
    assert "line 1 of l.jsonl" in refused(text)


def test_a_ledger_of_another_version_is_refused_even_with_checks_that_fit() -> None:
    content = json.loads(LINES[0])
    del content["check"]
    content["ledger"] = 2
    content["check"] = ledger_lines._check("", content)
    refused(json.dumps(content) + "\n")


def test_a_line_without_the_columns_of_a_person_is_read_as_unknown() -> None:
    check, lines = "", []
    for line in LINES:
        content = json.loads(line)
        del content["check"]
        content.pop("person", None)
        check = ledger_lines._check(check, content)
        lines.append(json.dumps({**content, "check": check}) + "\n")
    _, charges = read("l.jsonl", "".join(lines))
    assert [charge.person for charge in charges] == [(), ()]
    assert [charge.cost for charge in charges] == list(COSTS)
