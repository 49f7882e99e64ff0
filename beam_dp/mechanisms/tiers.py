"""People with an epsilon of their own: which of a few public ones each person has.

The epsilons that are allowed are public, and so is which of them a person has, like their identity:
it must not depend on what the data say of them.
"""

import dataclasses
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms import checks, contributions, ordering, persons
from beam_dp.mechanisms.budget import Budget
from beam_dp.mechanisms.candidates import Candidates
from beam_dp.mechanisms.contributions import Table
from beam_dp.mechanisms.exact import LOWEST, is_missing
from beam_dp.mechanisms.metrics import check_places
from beam_dp.mechanisms.owned import Owned, Relation, owners
from beam_dp.mechanisms.spreads import Preprocessing

MOST_TIERS = 1 << 10
_LEAST = Fraction(1, 1_000_000)
_WIDEST = 1 << 62
_NOBODY = np.zeros(0, np.int64)
STATISTICS = ("sum", "maximum", "minimum", "median")


@dataclasses.dataclass(frozen=True)
class PersonalisedStatistic(Preprocessing):
    """A sum or an extreme of one number per person, each person with an epsilon of their own.

    With an epsilon_i per person the noise has one scale b, and person i moves g by at most
    Delta_i = b epsilon_i: see `preprocessing.Personalised`. These are the statistics whose g is
    known for unequal Delta_i and any number of people: sums (each person cut to Delta_i) and
    max(empty, largest value) with its mirror. A median is searched, each person with a weight
    (`weighted`); `sensitivity` and `empty` do not apply to it.

    Attributes:
        column: the value column.
        of: "sum", "maximum", "minimum" or "median".
        person_epsilon: the column that holds each person's epsilon.
        epsilons: the public numbers that may be in it, multiples of a millionth.
        candidates: the public outputs of a median; None: as for `Median`.
        beta: how often the guarantee of a median may fail.
    """

    column: str
    of: str
    person_epsilon: str
    epsilons: tuple[checks.Real, ...]
    _: dataclasses.KW_ONLY
    candidates: Candidates | None = None
    beta: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = "PreprocessSensitivity"
        checks.one_of(owner, "statistic", self.of, STATISTICS)
        checks.column(owner, "person_epsilon", self.person_epsilon)
        check_places(owner, self.candidates)
        object.__setattr__(self, "epsilons", check_epsilons(owner, self.epsilons))

    @property
    def statistic(self) -> str:
        """What is computed."""
        return self.of

    @property
    def tiers(self) -> tuple[str, tuple[checks.Real, ...]]:
        """The column of epsilons, and the public ones in rising order."""
        return self.person_epsilon, self.epsilons

    @property
    def _prefix(self) -> str:
        return self.of


def check_epsilons(owner: str, epsilons: object) -> tuple[Fraction, ...]:
    """Return public epsilons in rising order."""
    if not isinstance(epsilons, (list, tuple)) or not epsilons:
        raise TypeError(
            f"{owner}: epsilons must be a list of the public epsilons that people may have, not "
            f"{epsilons!r}. Write epsilons=[0.5, 1.0]."
        )
    found = {checks.decimal(owner, "epsilons", each) for each in epsilons}
    checks.require(
        all(each > 0 and (each / _LEAST).denominator == 1 for each in found),
        f"{owner}: epsilons must be positive multiples of 0.000001, not {list(epsilons)!r}.",
    )
    checks.require(
        len(found) <= MOST_TIERS,
        f"{owner}: epsilons must be at most {MOST_TIERS} different ones, not {len(found)}.",
    )
    return tuple(sorted(found))


def check_budget(owner: str, budget: Budget, epsilons: tuple[Fraction, ...]) -> None:
    """Refuse a budget that is not what the most generous person allows."""
    checks.require(
        not budget.is_zcdp and budget.delta == 0,
        f"{owner}: budget must be a pure epsilon for people with an epsilon of their own, not "
        f"{budget!r}. Write budget=dp.Budget(epsilon={float(epsilons[-1])}).",
    )
    checks.require(
        float(budget.amount) == float(epsilons[-1]),
        f"{owner}: budget must be the largest of epsilons, {float(epsilons[-1])}, not "
        f"{float(budget.amount)}: that is what the person who allows most allows.",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TierRelation(Relation):
    """One line per person and partition: their number, with 1 + the place of their tier as count.

    A person's tier is the lowest in any of their rows that the bounds leave, in all partitions.

    Attributes:
        tier: the place of the column of tiers.
        person_value: what a person's values become.
    """

    tier: int
    person_value: str

    def lines(self, table: Table, place: int, key: bytes) -> Owned:
        """Return the lines of settled rows, which hold all of each person in them."""
        values = [*table.values, _lowest(table, self.tier)]
        kept = ~is_missing(table.values[self.column], LOWEST)
        table = dataclasses.replace(table, values=values).take(kept)
        return self._lines_of(self.latest(table), place, key)

    def _lines_of(self, table: Table, place: int, key: bytes) -> Owned:
        pairs = np.concatenate([table.person, table.partition])
        starts = np.flatnonzero(ordering.changes(pairs)) if len(table) else _NOBODY
        numbers = persons.of_people(
            self.person_value, table.values[self.column], table.rows, starts
        )
        heads = table.take(starts)
        person = owners(heads.person, key)
        where = np.full(len(heads), place, np.int64)
        items = np.array([max(-_WIDEST, min(_WIDEST, int(each))) for each in numbers], np.int64)
        counts = heads.values[-1] + 1
        return Owned(heads.partition, where, person, person, items, counts, heads.names)


def _lowest(table: Table, tier: int) -> np.ndarray:
    """Return for each line the lowest tier of its person; people stand together."""
    if not len(table):
        return np.zeros(0, np.int64)
    starts = np.flatnonzero(ordering.changes(contributions.two_words(table.person)))
    lowest = np.minimum.reduceat(table.values[tier], starts)
    return np.repeat(lowest, np.diff(starts, append=len(table)))
