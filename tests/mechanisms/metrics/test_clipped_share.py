"""Shares of rows: what a person moves at any clips, what they keep, and broken twins that fail."""

import dataclasses
import itertools
import random
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics.clipped import STEPS, ClippedShare
from beam_dp.mechanisms.planning.program import compile_program
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.histograms import Part
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from tests.doubles import ZeroNoise
from tests.mechanisms.metrics.test_clipped_sum import chosen
from tests.reference import Row, table_of

CLIPS = (0, 1, 2, 5)
"""Indexes of clips: 1, 2, 4 and 32 rows."""
BUDGET = dp.Budget(1)


def numbers(per: str = "row") -> tuple[list[ClippedShare], tuple]:
    """Return the rows of the kind and the others, as a job releases them, and the fields."""
    program = compile_program([dp.Ratio("x", per=per)], BUDGET, 1)
    made = [step.release for step in program.steps]
    assert [type(each) for each in made] == [ClippedShare] * 2
    assert [each.rest for each in made] == [False, True]
    return [dataclasses.replace(each, pool=None, place=0) for each in made], program.fields


def in_steps(release: ClippedShare, fields: tuple, rows: list[Row], clip: int) -> int:
    """Return what is released without noise at the clip of an index, in steps of a row."""
    bounder = Bounder(ContributionBounds(None), fields, bytes(32))
    table = bounder.settle(bounder.prepare(table_of(rows)))
    summary = histograms.summarise(table, release.measures)
    view = PartitionView(summary, np.zeros(len(summary), np.int64), 1)
    choice = chosen(release, clip) if release.looks else None
    [value] = release.draw(view.at(0, choice), ZeroNoise()).values
    exact = Fraction(float(value)) * STEPS
    assert exact.denominator == 1
    return int(exact)


def people(source: random.Random, size: int) -> list[Row]:
    """Return the rows of some people: of the kind, others, and without a value."""
    kinds = [source.choice([(1,), (0,), (1, 0), (1, 0, 0, 0, None), (None,)]) for _ in range(size)]
    return [
        Row((person, 0), (0, 0), (source.choice(kinds[person]),))
        for person in range(size)
        for _ in range(source.choice([1, 2, 3, 5, 40]))
    ]


def weighed(rows: list[Row], clip: int, rest: bool) -> int:
    """Return, by the definition, what all people count for, in steps."""
    counts: dict = defaultdict(lambda: [0, 0])
    for row in rows:
        if row.values[0] is not None:
            counts[row.person][row.values[0]] += 1
    total = 0
    for zeros, ones in counts.values():
        whole, part = zeros + ones, zeros if rest else ones
        # Below the clip everybody keeps each row; above it their share of the clip, rounded down.
        total += part * STEPS if whole <= clip else part * STEPS // whole * clip
    return total


def test_people_count_for_their_rows_or_for_their_share_of_the_clip() -> None:
    source = random.Random(11)
    released, fields = numbers()
    for _ in range(60):
        rows = people(source, source.randrange(1, 7))
        for release, clip in itertools.product(released, CLIPS):
            found = in_steps(release, fields, rows, clip)
            assert found == weighed(rows, 1 << clip, release.rest)


def moves_at_most_the_clip() -> bool:
    """A person moves each number by 0 to C, whatever the clip of the other is."""
    source = random.Random(12)
    released, fields = numbers()
    reached = set()
    for _ in range(40):
        rows = people(source, source.randrange(2, 6))
        fewer = [row for row in rows if row.person != (0, 0)]
        moved = [
            {
                clip: in_steps(each, fields, rows, clip) - in_steps(each, fields, fewer, clip)
                for clip in CLIPS
            }
            for each in released
        ]
        for one, other in itertools.product(CLIPS, CLIPS):
            sides = moved[0][one], moved[1][other]
            for move, clip in zip(sides, (one, other), strict=True):
                if not 0 <= move <= STEPS << clip:
                    return False
                reached.add(move == STEPS << clip)
    return True in reached


def keeps_the_share() -> bool:
    """The number of the kind is a_i / b_i of what a person counts for, within 1 / 1024."""
    released, fields = numbers()
    source = random.Random(13)
    for _ in range(40):
        whole = source.randrange(1, 90)
        part = source.randrange(whole + 1)
        rows = [Row((7, 0), (0, 0), (int(place < part),)) for place in range(whole)]
        for clip in CLIPS:
            counted = min(whole, 1 << clip)
            for release, mine in zip(released, (part, whole - part), strict=True):
                found = Fraction(in_steps(release, fields, rows, clip), STEPS * counted)
                if not Fraction(mine, whole) - Fraction(1, STEPS) < found <= Fraction(mine, whole):
                    return False
    return True


def test_a_person_who_is_added_moves_both_numbers_by_at_most_the_clip() -> None:
    assert moves_at_most_the_clip()


def test_a_person_keeps_their_own_share() -> None:
    assert keeps_the_share()


@pytest.mark.parametrize("values", [(1, 1, 1), (0, 0), (1, 0, None), (None,), (0, 1) * 30])
def test_of_people_each_is_on_one_side(values: tuple) -> None:
    released, fields = numbers("person")
    rows = [Row((1, 0), (0, 0), (value,)) for value in values]
    known = any(value is not None for value in values)
    expected = [known and 1 in values, known and 1 not in values]
    assert [in_steps(each, fields, rows, 0) for each in released] == [STEPS * e for e in expected]


def test_a_number_of_the_others_has_the_clip_of_those_of_the_kind() -> None:
    ones, others = numbers()[0]
    assert ones.chooser is ones and others.chooser is None
    assert (others.thresholds, others.looks) == (ones.thresholds, ones.looks)
    assert ones.spends_on_clip and not others.spends_on_clip


# ------------------------------------------------------------------------------------- broken twins


def _clip_one_larger(self, view, indexes, clip):
    shares = view.above(1, indexes) * (clip // STEPS + 1)
    return view.cut(0, indexes)[0] * STEPS + shares


def _unweighed(self, view, indexes, clip):
    return (view.cut(0, indexes)[0] + view.above(0, indexes)) * STEPS


def _rest_is_all(self, table, present, whole):
    part = np.clip(table.values[self.field][present], 0, whole)
    part = whole if self.rest else part
    return part * self.steps // whole if self.steps else part


def _rounded_up(self, table, present, whole):
    part = np.clip(table.values[self.field][present], 0, whole)
    part = whole - part if self.rest else part
    return -(-part * self.steps // whole) if self.steps else part


@pytest.mark.parametrize(
    ("owner", "name", "broken", "check"),
    [
        (ClippedShare, "_clipped", _clip_one_larger, moves_at_most_the_clip),
        (ClippedShare, "_clipped", _unweighed, moves_at_most_the_clip),
        (Part, "of", _rest_is_all, keeps_the_share),
        (Part, "of", _rounded_up, keeps_the_share),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_broken_twin_is_noticed(monkeypatch, owner, name, broken, check) -> None:
    monkeypatch.setattr(owner, name, broken)
    assert not check()
