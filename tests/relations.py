"""Small databases of rows and their owners, and what is true of them: for several test files."""

import collections
import functools
import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Role
from beam_dp.mechanisms.planning.compile import Loss, compile_loss
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.profiles import frequency, kth_largest
from beam_dp.mechanisms.profiles.packed import by_threshold
from beam_dp.mechanisms.profiles.packed.packed_rows import MostFrequent, PackedRows
from beam_dp.mechanisms.profiles.packed.packed_values import PackedValues
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure
from beam_dp.mechanisms.summaries.owner_lines import Lines
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.removal_loss import measures_of
from beam_dp.transforms.stages import bound_and_summarise as settling
from beam_dp.transforms.stages import draw_once

KEY = bytes(range(32))
THOUSANDTH = Fraction(1, 1000)
UNIT = Fraction(1, 10**6)
REMOVALS = 4
FREE = ContributionBounds(None)
Patch = pytest.MonkeyPatch
Item = str | int | None


def check_noticed(check: Callable[[], None], mutate: Callable[[Patch], None]) -> None:
    """Assert that a check fails while something is broken."""
    with Patch.context() as patch:
        mutate(patch)
        with pytest.raises(AssertionError):
            check()


def owners_of(people: Iterable[int]) -> np.ndarray:
    """Return owners for numbers of people, in two words where any needs them; 0 and 3 share one."""
    numbers = np.array([*people], np.uint64)
    words = np.stack([numbers % np.uint64(3), numbers // np.uint64(3)])
    return words if words[1].any() else words[:1]


def people_of(owners: np.ndarray) -> list[int]:
    """Return the numbers that `owners_of` was given."""
    first, *rest = owners.tolist()
    return [one + 3 * (rest[0][place] if rest else 0) for place, one in enumerate(first)]


class Row(NamedTuple):
    """A row; `to`, `by` and `via` are further owners where rows have several."""

    person: int | None
    day: int
    value: float | None = None
    item: Item = None
    to: int | None = None
    by: int | None = None
    via: int | None = None

    @property
    def owners(self) -> set[int]:
        """Everybody who owns it."""
        return {one for one in (self.person, self.to, self.by, self.via) if one is not None}


OTHERS = ("to", "by", "via")
Rows = Sequence[Row]


class Statistic(NamedTuple):
    """A metric, what it means, and the function that makes its profile of (owner, value) rows.

    Attributes:
        metric: what is asked for.
        f: the statistic of the rows that are left.
        direct: B[0..REMOVALS] of all rows; None where B is exact, hence equal to brute force.
        others: the columns of further owners.
    """

    metric: Any
    f: Callable[[Rows], float]
    direct: Callable[[Rows], Sequence[float | Fraction]] | None = None
    others: tuple[str, ...] = ()


def values(rows: Rows) -> list[float]:
    """Return the values that are numbers, the largest first."""
    found = [row.value for row in rows if row.value is not None and not math.isnan(row.value)]
    return sorted(found, reverse=True)


def kth(rows: Rows, k: int) -> float:
    found = values(rows)
    return found[k - 1] if len(found) >= k else -math.inf


def counts(rows: Rows) -> collections.Counter[str]:
    """Return how often each item occurs; 7 and "7" are one item."""
    return collections.Counter(str(row.item) for row in rows if row.item is not None)


def coded(rows: Rows) -> Lines:
    """Return the rows that have an item as lines of one owner and one row each."""
    kept = [row for row in rows if row.item is not None]
    names = sorted({str(row.item) for row in kept})
    items = [names.index(str(row.item)) for row in kept]
    people = np.array([-1 if row.person is None else row.person for row in kept], np.int64)
    return Lines(people[None], np.array(items, np.int64), np.ones(len(kept), np.int64))


def levels_of_sums(people: Sequence[Sequence[float]]) -> Iterable[float]:
    """A user's profile function: the sum of all people's largest values."""
    largest = sorted((max(0.0, person[-1]) for person in people), reverse=True)
    return (sum(largest[k:]) for k in range(len(largest) + 1))


def sum_of_largest(rows: Rows) -> float:
    best: dict[int, float] = {}
    for row in rows:
        if values([row]):
            best[row.person] = max(best.get(row.person, 0.0), values([row])[0])
    return sum(best.values())


def sum_above_0(rows: Rows) -> float:
    """Return the sum of people's totals, of which those below 0 count as 0."""
    totals: dict[int | None, float] = collections.Counter()
    for row in rows:
        totals[row.person] += sum(values([row]))
    return sum(max(0.0, total) for total in totals.values())


def weights(rows: Rows) -> np.ndarray:
    """Return what rows with several owners add to a sum, in thousandths."""
    return np.array([int(max([0.0, *values([row])]) / THOUSANDTH) for row in rows], np.int64)


def roles(rows: Rows) -> np.ndarray:
    """Return everybody who owns a row, once, and -1 for nobody: of shape (4, rows)."""
    each = [[*sorted(row.owners), *[-1] * 4][:4] for row in rows]
    return np.array(each, np.int64).reshape(-1, 4).T


def with_value(rows: Rows) -> list[Row]:
    return [row for row in rows if values([row])]


def units(rows: Rows, sign: int) -> np.ndarray:
    """Return the values in units; for a minimum mirrored."""
    return np.array([sign * int(Fraction(str(row.value)) / UNIT) for row in rows], np.int64)


def counted(rows: Rows) -> Sequence[float | Fraction]:
    """Return the profile of a count of rows with several owners, straight from the rows."""
    return by_threshold.profile(PackedRows(roles(rows), None), REMOVALS)


def summed(rows: Rows) -> Sequence[float | Fraction]:
    kept = with_value(rows)
    found = by_threshold.profile(PackedRows(roles(kept), None, weights(kept)), REMOVALS)
    return [level * THOUSANDTH for level in found]


def ranked(rows: Rows, k: int, sign: int) -> Sequence[float | Fraction]:
    kept = with_value(rows)
    given = roles(kept), units(kept, sign), np.ones(len(kept), np.int64)
    found = kth_largest.profile(*given, k, REMOVALS)
    return [float(level * UNIT) if level > -math.inf else level for level in found]


def covered(rows: Rows) -> Sequence[float | Fraction]:
    kept = [row for row in rows if row.item is not None]
    return by_threshold.profile(PackedValues(roles(kept), coded(kept).items), REMOVALS)


def frequent(rows: Rows) -> Sequence[float | Fraction]:
    kept = [row for row in rows if row.item is not None]
    return by_threshold.profile(MostFrequent(roles(kept), *coded(kept)[1:]), REMOVALS)


ONE_OWNER = {
    "rows": Statistic(dp.Count(), len),
    "people": Statistic(dp.PeopleCount(), lambda rows: len({row.person for row in rows})),
    "sum": Statistic(dp.Sum("value"), sum_above_0),
    "max": Statistic(dp.Max("value"), functools.partial(kth, k=1)),
    "min": Statistic(dp.Min("value"), lambda rows: -min(values(rows), default=math.inf)),
    **{f"{k}-th": Statistic(dp.KthLargest("value", k), functools.partial(kth, k=k))
       for k in (1, 2, 5)},
    "distinct": Statistic(
        dp.DistinctCount("item", search=dp.AboveThreshold),
        lambda rows: len(counts(rows)),
        lambda rows: by_threshold.profile(PackedValues(*coded(rows)[:2]), REMOVALS),
    ),
    "frequency": Statistic(
        dp.MaxFrequency("item", search=dp.AboveThreshold),
        lambda rows: max(counts(rows).values(), default=0),
        lambda rows: frequency.max_profile(coded(rows), REMOVALS),
    ),
    "squares": Statistic(
        dp.SumOfSquares("item"),
        lambda rows: sum(count**2 for count in counts(rows).values()),
        lambda rows: frequency.squares_profile(coded(rows), REMOVALS),
    ),
    "custom": Statistic(
        dp.CustomProfile(
            "value", levels_of_sums, candidates=dp.Candidates.linear(0, 9, 1), lowest=0
        ),
        sum_of_largest,
    ),
}  # fmt: skip


def of_several(others: tuple[str, ...], word: str) -> dict[str, Statistic]:
    """Return the statistics of rows with several owners, by a name that ends with their number."""
    lowest = Statistic(dp.Min("value"), lambda rows: -min(values(rows), default=math.inf),
                       functools.partial(ranked, k=1, sign=-1))  # fmt: skip
    distinct = dp.DistinctCount("item", search=dp.AboveThreshold)
    different = ONE_OWNER["distinct"].f
    found = {
        "rows": Statistic(dp.Count(), len, counted),
        "sum": Statistic(
            dp.Sum("value"),
            lambda rows: float(weights(rows).sum() * THOUSANDTH),
            summed,
        ),
        "distinct": Statistic(distinct, different, covered),
        "frequency": Statistic(dp.MaxFrequency("item"), ONE_OWNER["frequency"].f, frequent),
        "max": Statistic(
            dp.Max("value"), functools.partial(kth, k=1), functools.partial(ranked, k=1, sign=1)
        ),
        "3-rd": Statistic(
            dp.KthLargest("value", 3),
            functools.partial(kth, k=3),
            functools.partial(ranked, k=3, sign=1),
        ),
        "min": lowest,
    }
    return {f"{name} of {word}": one._replace(others=others) for name, one in found.items()}


TWO_OWNERS = of_several(("to",), "two")
SEVERAL_OWNERS = {
    **TWO_OWNERS,
    **of_several(("by", "to"), "three"),
    **of_several(OTHERS, "four"),
}
STATISTICS = {**ONE_OWNER, **SEVERAL_OWNERS}
_ROLES = ("four", "three", "two")
PIPED = ONE_OWNER | {
    f"{name} of {_ROLES[place % 3]}": SEVERAL_OWNERS[f"{name} of {_ROLES[place % 3]}"]
    for place, name in enumerate(("rows", "sum", "distinct", "frequency", "max", "3-rd", "min"))
}
"""Of the statistics of rows with several owners each with one number of owners."""
BOUNDS = {
    "none": FREE,
    "L0": ContributionBounds(1),
    "L0 and Linf": ContributionBounds(2, 2),
    "Linf": ContributionBounds(None, 1),
    "L1": ContributionBounds(2, None, 3),
    "all": ContributionBounds(3, 3, 4),
}


class View(NamedTuple):
    """What a release sees: a bucket of partitions, and their keys."""

    cells: PartitionView
    days: list[Any]


def compiled(statistic: Statistic) -> Loss:
    return compile_loss(statistic.metric, REMOVALS, statistic.others)


def as_dicts(rows: Rows) -> list[dict[str, Any]]:
    """Return rows as dicts; what is None is left out of every other one."""
    return [
        {name: found for name, found in row._asdict().items() if found is not None or place % 2}
        for place, row in enumerate(rows)
    ]


def views(
    rows: Iterable[Any],
    asked: Loss | Program,
    bounds: ContributionBounds = FREE,
    bundles: int = 1,
    shards: int = 4,
    buckets: int = 1,
    several: bool = False,
) -> list[View]:
    """Return what is seen of rows (dicts or Arrow) after the way of a pipeline, by bucket."""
    # Everybody, for the partitions that are there.
    measures = measures_of(asked) if isinstance(asked, Loss) else (*asked.measures, Measure(PEOPLE))
    assert several == any(column.role is Role.OWNER for column in asked.columns)
    layout = Layout("person", ("day",), asked.columns, None, KEY)
    bounder = Bounder(bounds, asked.fields, KEY, keep_rows=asked.keep_rows)
    listed = list(rows)
    packed = grouped(
        bundle(settling.Collect(layout, bounder, shards), listed[place::bundles])
        for place in range(bundles)
    )
    settle = settling.Settle(bounder, measures, (), buckets)
    settled = grouped(bundle(settle, [element]) for element in packed.items())
    places = draw_once.BucketPartitions(layout, buckets)
    opened = {bucket: settling.open_bucket(blobs, measures) for bucket, blobs in settled.items()}
    found = [
        places.cells(bucket, summary, lines, [draw_once.named_partitions(bucket, summary)])
        for bucket, (summary, lines) in opened.items()
    ]
    return [View(cells, [key[0] for key in places.names(listed)]) for cells, listed in found]


def bundle(step: Any, elements: Iterable[Any]) -> list[tuple[int, bytes]]:
    """Return what one bundle of a DoFn yields."""
    step.start_bundle()
    yielded = [found for element in elements for found in step.process(element)]
    return yielded + [windowed.value for windowed in step.finish_bundle()]


def grouped(parts: Iterable[list[tuple[int, bytes]]]) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = collections.defaultdict(list)
    for key, blob in itertools.chain.from_iterable(parts):
        found[key].append(blob)
    return found


def profiles(rows: Rows, statistic: Statistic, **options: Any) -> dict[int, tuple[Any, ...]]:
    """Return B[0..REMOVALS] per day."""
    loss, found = compiled(statistic), {}
    several = bool(statistic.others)
    for cells, days in views(as_dicts(rows), loss, several=several, **options):
        made = loss.profiler.profiles(cells.at(len(measures_of(loss)) - 1))
        found |= {day: one.values for day, one in zip(days, made, strict=True)}
    return found


class World(NamedTuple):
    """Many databases of a few people each, and in each of them one person more.

    Attributes:
        rows: of everybody.
        new: one person of each database.
    """

    rows: list[Row]
    new: set[int]

    @property
    def before(self) -> list[Row]:
        """The rows without those that a new person owns."""
        return [row for row in self.rows if not row.owners & self.new]


VALUES = (None, math.nan, -2.5, 0.0, 0.25, 1.0, 1.0, 3.5, 7.0, 7.0)
ITEMS: tuple[Item, ...] = (None, "a", "b", "c", "7", 7, -3)


def world(databases: int, days: int = 1, seed: int = 1) -> World:
    """Return random databases of 1 to 6 people; each has days and people of its own."""
    draw = random.Random(seed)
    rows, new = [], set()
    for number in range(databases):
        people = [16 * number + place for place in range(draw.randint(1, 6))]
        new.add(draw.choice(people))
        for _ in range(draw.randint(1, 12)):
            person, to = draw.choice(people), draw.choice([*people, *people, None])
            by, via = (draw.choice([*people, *people, None]) for _ in range(2))
            day = days * number + draw.randrange(days)
            row = Row(person, day, draw.choice(VALUES), draw.choice(ITEMS), to, by, via)
            rows += [row] * draw.choice((1, 1, 2, 3))
    draw.shuffle(rows)
    return World(rows, new)


def by_day(rows: Rows) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = collections.defaultdict(list)
    for row in rows:
        found[row.day].append(row)
    return found


def unnumbered(name: str, rows: Rows) -> set[int]:
    """Return the days where nobody has a number, of which a statistic of numbers has no line."""
    numbers = {"sum": sum_above_0, "max": values, "min": values}.get(name, len)
    return {day for day, kept in by_day(rows).items() if not numbers(kept)}


def brute(rows: Rows, f: Callable[[Rows], float]) -> list[float]:
    """Return the exact B[0..REMOVALS], by trying every set of people."""
    people = set[int]().union(*(row.owners for row in rows))
    found = []
    for k in range(REMOVALS + 1):
        sets = map(set, itertools.combinations(people, min(k, len(people))))
        found.append(min(f([row for row in rows if not row.owners & gone]) for gone in sets))
    return found


def of_roles(rows: Rows, others: Sequence[str]) -> list[Row]:
    """Return the rows without other roles; where they have several, some have no first owner."""
    none = dict.fromkeys(set(OTHERS) - set(others))
    kept = [row._replace(**none) for row in rows]
    bare = [row._replace(person=None) if place % 5 == 0 else row for place, row in enumerate(kept)]
    return [some if some.owners else row for some, row in zip(bare, kept, strict=True)]


def data_of(statistic: Statistic, databases: int, days: int = 1, seed: int = 1) -> World:
    made = world(databases, days, seed)
    return made._replace(rows=of_roles(made.rows, statistic.others))


def moves(before: dict[int, tuple[Any, ...]], after: dict[int, tuple[Any, ...]]) -> set[bool]:
    """Return whether all profiles interlace, day by day, and whether some B[0] moved.

    B'[k + 1] <= B[k] <= B'[k] for all k is the same as: every candidate's loss rises by 0 or 1.
    """
    for day, new in after.items():
        old = before.get(day)
        if old is None:
            continue
        upper = all(low <= high for low, high in zip(old, new, strict=False))
        lower = all(high <= low for low, high in zip(old, new[1:], strict=False))
        assert upper and lower, day
    assert set(before) <= set(after)
    return {before.get(day, (None,))[0] != new[0] for day, new in after.items()}
