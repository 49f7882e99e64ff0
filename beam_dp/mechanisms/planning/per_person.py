"""Build what is released of one number per person: preprocessed statistics, black boxes, ratios."""

import functools
from fractions import Fraction

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.defaults import default_candidates
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.column_places import Places
from beam_dp.mechanisms.planning.parts import Part
from beam_dp.mechanisms.releases import person_epsilon, preprocessed, subsample
from beam_dp.mechanisms.releases.preprocessed import PreprocessedRelease
from beam_dp.mechanisms.releases.ratio import RatioRelease, mechanism_of
from beam_dp.mechanisms.releases.subsample import BlackBoxRelease
from beam_dp.mechanisms.releases.weighted_median import WeightedMedian
from beam_dp.mechanisms.search import RankSearch
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.person_epsilon import TierRelation


def preprocessed_release(
    part: Part, places: Places, share: Budget, reach: int, alpha: Fraction
) -> PreprocessedRelease | WeightedMedian:
    """Return the release of a preprocessed statistic, or of people with an epsilon of their own.

    Args:
        part: what is released.
        places: where its data is found.
        share: what it may cost, over all partitions of a person.
        reach: how many these are.
        alpha: the chance that the error bound fails.
    """
    asked, epsilons = part.detail
    column, unit, order = places.column(part), places.unit(part), places.order(asked.last_by)
    field = functools.partial(places.field, column)
    if not epsilons:
        relation = Relation(column, order=order)
        return preprocessed.build(asked, relation, unit, share, reach, alpha, field)
    value = asked.person_value
    lines = TierRelation(column, order=order, tier=places.tier, person_value=value)
    if asked.statistic != "median":
        return person_epsilon.build(asked, lines, unit, epsilons, share, reach, alpha, field)
    search = RankSearch(share.scaled(Fraction(1, reach)), beta=part.options.beta)
    candidates = part.options.candidates or default_candidates("rank", unit)
    return WeightedMedian(lines, unit, epsilons, search, candidates)


def black_box_release(part: Part, places: Places, each: Budget) -> BlackBoxRelease:
    """Return the release of a black box.

    Args:
        part: what is released.
        places: where its data is found.
        each: what one partition may cost.
    """
    place = places.column(part), places.order(part.detail[3]), places.unit(part)
    candidates, beta = places.candidates(part), float(part.options.beta)
    return subsample.build(part.detail, *place, candidates, beta, each)


def ratio_release(
    part: Part,
    places: Places,
    share: Budget,
    reach: int,
    alpha: Fraction,
    depth: int | None,
    partitions: int | None,
) -> RatioRelease:
    """Return the release of a ratio.

    Args:
        part: what is released.
        places: where its data is found.
        share: what it may cost, over all partitions of a person.
        reach: how many these are.
        alpha: the chance that the error bound fails.
        depth: the most rows per person and partition; None: unknown.
        partitions: how many there are; None: unknown.

    Raises:
        ValueError: for a ratio of rows without a bound on them.
    """
    equals, method, neighbours = part.detail
    rows = 1 if part.people else depth
    checks.require(
        rows is not None,
        "Ratio: bounds must limit the rows of one person in a partition, as each row counts. "
        'Write bounds=dp.ContributionBounds(..., rows_per_partition=10), or per="person".',
    )
    column = places.flag(part, equals)
    ones, everything = ("max", "count") if part.people else ("sum", "count")
    some, most = Measure(places.field(column, ones)), Measure(places.field(column, everything))
    changed = min(2 * reach, partitions or 2 * reach)
    mechanism = mechanism_of(method, neighbours, share, rows or 1, reach, changed)
    each = share.scaled(Fraction(1, reach))
    return RatioRelease(mechanism, some, most, part.people, alpha, each)
