"""What is chosen on the way: the selected partitions, centres, and the bound for ranks.

The release is the same as with these given, and each is drawn once.
"""

import collections
import functools
import math
import random
from fractions import Fraction
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.histogram_choice.partition_bound import edges_up_to
from beam_dp.mechanisms.noise.partition_selection import weights_of
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning import adaptive
from beam_dp.mechanisms.planning.budget_split import SelectionRequest
from beam_dp.mechanisms.planning.compile import compiled, program_at
from beam_dp.mechanisms.planning.program import Adaptive, Program
from beam_dp.mechanisms.planning.request import SEARCH_SHARE
from beam_dp.mechanisms.summaries import wire
from beam_dp.mechanisms.summaries.histograms import WEIGHTS, Measure
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.columns.public_keys import KeyList, PublicKeys
from beam_dp.transforms.stages import draw_once
from beam_dp.transforms.stages.bound_and_summarise import (
    SHARED,
    VOTES,
    WEIGHED,
    First,
    ReduceShards,
    Selected,
    Summarise,
    open_bucket,
    pieces,
)
from beam_dp.transforms.stages.draw_once import Block
from beam_dp.transforms.stages.draws_folder import Barriers
from tests.doubles import ZeroNoise, compile_program
from tests.reference import Row, table_of
from tests.transforms.stages.test_bound_and_summarise import settled

DAYS = list(range(20))
PUBLIC = PublicKeys(KeyList.of((day,) for day in DAYS))
METRICS = [dp.DistinctCount("person", clip=1), dp.Count(clip=2)]
"""Without noise the first is the number of people in a partition who are left by the bound."""
KEY = bytes(range(32))

SEEN: dict[str, list[Any]] = {}


def see(element: Any, name: str) -> None:
    SEEN.setdefault(name, []).append(element)


@pytest.fixture(autouse=True)
def forget() -> None:
    SEEN.clear()


def seen(name: str) -> list[Any]:
    return SEEN.pop(name, [])


def visits(many: int = 6, max_partitions: int = 15) -> list[dict[str, Any]]:
    """Return 600 people with 3 days each, some of them with `max_partitions` days, and rows
    twice."""
    rows = []
    for person in range(600):
        days = max_partitions if person < many else 3
        rows += [
            {"person": person, "day": (person + step) % 20, "value": 1.0} for step in range(days)
        ]
    return rows + rows[:50] + [{"person": 1, "day": 77, "value": 1.0}]


def program_for(
    metrics: list[Any], budget: dp.Budget, selection: SelectionRequest | None = None
) -> Program:
    partitions = None if selection else 20
    edges = edges_up_to(partitions)
    return compile_program(metrics, budget, edges, selection=selection, partitions=partitions)


PROGRAM = program_for(METRICS, dp.Budget(1))
SELECTING = program_for([dp.Count()], dp.Budget(1, 1e-6), SelectionRequest(Fraction(1), 1))


def steps_of(
    program: Program, noise: Noise, bounds: ContributionBounds, first: bool = True
) -> tuple[Summarise, draw_once.DrawOnce]:
    """Return the summaries and the draw of a run."""
    public = PUBLIC if program.selection is None else None
    layout = Layout("person", ("day",), program.columns, public, KEY)
    bounder = Bounder(bounds, program.fields, KEY, keep_rows=program.keep_rows)
    how = program, noise, Barriers()
    select = (
        functools.partial(draw_once.DrawSelection, *how, 2)
        if program.selection is not None
        else None
    )
    choices = First(program, draw_once.ChooseParameters(*how), select) if first else None
    measures = program.measures, program.shared_measures
    summarise = Summarise(layout, bounder, *measures, 2, 8, choices)
    places = draw_once.BucketPartitions(layout, 2)
    return summarise, draw_once.DrawOnce(program, places, noise, choices)


def run(
    rows: list[dict[str, Any]],
    program: Program = PROGRAM,
    bound: int | None = None,
    noise: Noise | None = None,
    **options: Any,
) -> list[tuple[Any, ...]]:
    """Return the keys and numbers of a release; by default without noise.

    Args:
        rows: the rows.
        program: the program, which chooses unless a bound is given.
        bound: the bound on partitions.
        noise: the randomness.
        options: those of the runner.
    """
    bounds = ContributionBounds(bound)
    summarise, draw = steps_of(program, noise or ZeroNoise(), bounds, first=bound is None)
    with beam.Pipeline("FnApiRunner", PipelineOptions([], **options)) as pipeline:
        drawn = pipeline | beam.Create(rows, reshuffle=False) | summarise | draw
        _ = drawn | beam.FlatMap(Block.rows, PUBLIC) | "See" >> beam.Map(see, "rows")
        for name in ("chosen", "selected"):
            found = getattr(summarise.first, name, None)
            if found is not None:
                _ = found | f"See {name}" >> beam.Map(see, name)
                again = found | f"Again {name}" >> beam.Reshuffle()
                _ = again | f"See {name} again" >> beam.Map(see, name)
    return sorted(seen("rows"))


def test_the_release_is_that_of_the_chosen_bound() -> None:
    rows = visits()
    found = run(rows, direct_runner_bundle_repeat=1)
    choice = seen("chosen")[0].bound
    assert choice is not None and choice.bound == 3
    edges = (*choice.choice.thresholds, None)
    people = dict(zip(edges, choice.noisy.ravel().tolist(), strict=True))
    assert people == {**dict.fromkeys(edges, 0), 3: 594, 16: 6}
    found = found[:: len(found) // 20]  # of repeated bundles every row is seen several times
    expected = run(rows, program_at(PROGRAM.request, 3), 3)
    assert [day for day, _ in found] == [day for day, _ in expected]
    assert [drawn[0] for _, drawn in found] == [same[0] for _, same in expected]
    # What the chosen bound cuts is known from the histogram, and widens the intervals.
    assert all(drawn[2] > same[2] for (_, drawn), (_, same) in zip(found, expected, strict=True))
    assert len(found) == 20 and sum(numbers[0] for _, numbers in found) == 600 * 3


@pytest.mark.parametrize("rows", [[], [{"person": 1, "day": 77, "value": 1.0}]])
def test_nobody_is_no_case_of_its_own(rows: list[dict[str, Any]]) -> None:
    found, choice = run(rows), seen("chosen")[0].bound
    assert len(found) == 20 and choice.noisy.sum() == 0 and choice.bound == 3


@pytest.mark.audit
def test_limits_on_rows_hold_beside_a_chosen_bound() -> None:
    """At epsilon 10^5 noise is 0 but for e^-1000."""
    bounds = dp.ContributionBounds(rows=6, rows_per_partition=1)
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        release = dp.PrivateAggregate(
            "person", [*METRICS, dp.Sum("value", clip=10)], dp.Budget(1e5), ["day"], bounds,
            dp.PublicPartitions(DAYS),
        )  # fmt: skip
        drawn = pipeline | beam.Create(visits(many=600, max_partitions=15)) | release
        _ = drawn | beam.Map(lambda row: row._asdict()) | "See" >> beam.Map(see, "rows")
    found = seen("rows")
    assert sum(row["distinct_person"] for row in found) == 600 * 6
    assert sum(row["sum_value"] for row in found) == pytest.approx(600 * 6, abs=0.1)


class Wandering(Noise):
    """Noise that differs at every draw by far more than the people are."""

    def discrete_laplace(self, rate: Any, size: int) -> Any:
        return super().discrete_laplace(rate / 10**6, size)


def test_the_bound_is_drawn_once() -> None:
    """Two draws agree in 11 counts of a scale above 10^6 with a chance below 10^-60."""
    run(visits()[:100], noise=Wandering(), direct_runner_bundle_repeat=1)
    found = seen("chosen")
    counts = {tuple(each.bound.noisy.ravel().tolist()) for each in found}
    assert len(found) >= 2 and len(counts) == 1


HALF = SELECTING.selection.middle(1)
ALIKE = [{"person": person, "day": person % 40} for person in range(40 * HALF)]
"""40 days that are each selected with a chance of about a half."""


def test_partitions_are_selected_once() -> None:
    """Noise has a deviation of 9 people: two draws agree on 40 days with a chance below 1e-11."""
    assert SELECTING.selection.variance > (9 * 2**20) ** 2
    released = run(ALIKE, SELECTING, noise=Noise(), direct_runner_bundle_repeat=1)
    found = {each.bucket: set() for each in SEEN["selected"]}
    for each in seen("selected"):
        found[each.bucket].add(tuple(each.keys.tolist()))
    assert all(len(draws) == 1 for draws in found.values()) and sorted(found) == [0, 1]
    selected = {key for draws in found.values() for keys in draws for key in keys}
    assert {key for key, _ in released} == selected and len(released) % len(selected) == 0


def test_only_selected_partitions_count_for_a_norm() -> None:
    """Ten people have two rows in each of 90 partitions, of which 45 are selected."""
    people, places = (part.ravel().astype(np.uint64) for part in np.mgrid[:10, :90])
    table = Table(people[None], places[None], np.full(900, 2), [])
    bounder = Bounder(ContributionBounds(None), SELECTING.fields, KEY)
    identities = np.stack([np.arange(0, 90, 2), np.zeros(45)]).astype(np.uint64)
    half = Selected(0, identities, identities[0].astype(object))
    blobs = settled(SELECTING, bounder, table, None, [half])
    made = compiled(SELECTING.request, Adaptive(partitions=45))
    for index, measure in enumerate(made.shared_measures):
        everybody, _ = open_bucket(blobs[SHARED], made.shared_measures)
        here = everybody.take(everybody.measure == index)
        norm = {1: 90, 2: math.isqrt(180 * 64**2 - 1) + 1}[measure.norm]
        assert here.people.tolist() == [10]
        assert here.bucket.tolist() == [np.searchsorted(measure.thresholds, norm)]
    summary, _ = open_bucket(blobs[0], made.measures)
    assert {measure.norm for measure in made.shared_measures} == {1, 2}
    assert sorted(set(summary.partition[0].tolist())) == [*range(0, 90, 2)]


def test_few_partitions_need_no_gaussian_noise() -> None:
    """Of two partitions an L1 norm is at most the root of 2 L2 norms, so Laplace noise errs less."""
    norms = [
        {measure.norm for measure in compiled(SELECTING.request, Adaptive(partitions=n)).measures}
        for n in (2, 45)
    ]
    assert norms == [{1}, {1, 2}]


def test_a_centre_is_the_median_of_peoples_means() -> None:
    """At epsilon 10^5 the search errs by less than a person, but for e^-100."""
    rows = [
        {"person": person, "day": day, "value": 1900.0 + person % 101}
        for person in range(404)
        for day in (person % 20, person % 7)
    ]
    program = program_for([dp.Mean("value")], dp.Budget(1e5))
    found = run(rows, program, noise=Noise())
    assert {each.centres for each in seen("chosen")} == {(1950 * 10**6,)}
    for (day,), (mean, *_) in found:
        assert mean == pytest.approx(np.mean([r["value"] for r in rows if r["day"] == day]))


def test_the_record_says_how_the_bound_was_chosen() -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        release = dp.PrivateAggregate(
            "person", METRICS, dp.Budget(1), ["day"], partitions=dp.PublicPartitions(DAYS)
        )
        _ = pipeline | beam.Create(visits()) | release
        _ = release.record() | "See" >> beam.Map(see, "record")
    [record] = seen("record")
    assert record["spent"][0]["on"] == "partitions per person"
    assert record["spent"][0]["epsilon"] == str(SEARCH_SHARE)
    said = record["partitions_chosen"]
    assert said["steps"][:4] == [1, 2, 3, 4] and len(said["noisy_people"]) == 1 + len(said["steps"])
    assert record["partitions_of_one_person"] in said["steps"]


LISTED = {"partition": ["day"], "partitions": dp.PublicPartitions(DAYS)}
NO_AUTO = 'be a number or None, not "auto"'


@pytest.mark.parametrize("statistic", [dp.PeopleCount(), dp.Max("value")])
def test_where_nothing_is_released_nothing_is_chosen(statistic: Any) -> None:
    assert dp.RemovalLoss(statistic, "person", ["day"]).bounds == dp.ContributionBounds(None)
    with pytest.raises(ValueError, match=NO_AUTO):
        dp.RemovalLoss(statistic, "person", ["day"], bounds=dp.ContributionBounds())


def test_people_with_an_epsilon_of_their_own_pay_for_no_search_and_two_owners_have_no_bound() -> (
    None
):
    asked = dp.Sum("value"), "person", dp.Budget(2)
    own = {**LISTED, "person_epsilon": "e", "epsilons": [1, 2]}
    assert dp.PreprocessSensitivity(*asked, **own)._aggregate.bounds == dp.ContributionBounds(None)
    with pytest.raises(ValueError, match=NO_AUTO):
        dp.PreprocessSensitivity(*asked, **own, bounds=dp.ContributionBounds())
    made = dp.PrivateAggregate(["from", "to"], [dp.Max("value")], dp.Budget(1), **LISTED)
    assert made.bounds == dp.ContributionBounds(None)


def test_limits_on_rows_alone_choose_no_bound_where_none_can_be_chosen() -> None:
    rows = dp.ContributionBounds(rows=3)
    without = dp.ContributionBounds(None, rows=3)
    assert dp.RemovalLoss(dp.PeopleCount(), "person", ["day"], bounds=rows).bounds == without
    assert dp.BoundContributions("person", ["day"], rows).bounds == without
    blocks = [dp.BlackBox("value", max)]
    made = dp.PrivateAggregate("person", blocks, dp.Budget(9), bounds=rows, **LISTED)
    assert made.bounds == without and "(partitions per person)" not in str(made.plan())
    both = [*blocks, dp.PeopleCount()]
    assert dp.PrivateAggregate("person", both, dp.Budget(9), **LISTED).bounds.partitions is None
    with pytest.raises(ValueError, match=NO_AUTO):
        dp.BoundContributions("person", ["day"], dp.ContributionBounds())


def test_a_ladder_of_one_step_is_a_bound() -> None:
    """With 2^-13 a largest number can be searched in one partition of a person, not in two."""
    largest = dp.Max("value", search=dp.ExponentialMechanism)

    def bound(metric: Any, epsilon: float) -> tuple[int, bool, int | None]:
        program = dp.PrivateAggregate("person", [metric], dp.Budget(epsilon), **LISTED)._program
        return len(program.request.ladder), program.request.searches, program.limit

    assert bound(largest, 2.0**-13) == (1, False, 1)
    assert bound(largest, 1.0) == (9, True, None)
    assert bound(dp.Count(), 1.0) == (1, False, None)


@pytest.mark.parametrize(
    ("rows", "epsilon", "delta"), [(None, 3, 1e-2), (2, 8, 1e-2), (4, 30, 1e-2), (6, 0.5, 1e-4)]
)
def test_the_selection_costs_the_same_whatever_bound_is_chosen(
    rows: int | None, epsilon: float, delta: float
) -> None:
    """It is drawn before: what is left must be spent as if the least bound was chosen."""
    bounds = dp.ContributionBounds(rows=rows)
    release = dp.PrivateAggregate(
        "person", [dp.Max("value")], dp.Budget(epsilon, delta), ["day"], bounds
    )
    made = release._program
    for bound in made.request.ladder:
        again = program_at(made.request, bound)
        assert again.selection == made.selection and again.composed == made.composed


def test_one_selected_partition_is_all_that_a_person_has() -> None:
    """A number of people of one partition needs no clip; its account must hold all the same."""
    metrics = [dp.PeopleCount(), dp.Max("value")]
    request = SelectionRequest(Fraction(1), 1)
    made = compile_program(metrics, dp.Budget(1, 1e-6), 3, bound=3, selection=request)
    assert [
        compiled(made.request, Adaptive(partitions=several)).max_partitions
        for several in (1, 2, 3, 9)
    ] == [1, 2, 3, 3]


RANKED = compile_program(
    [dp.Max("value", candidates=dp.Candidates.of(range(5)))],
    dp.Budget(1, 1e-6),
    edges_up_to(6),
    selection=SelectionRequest(Fraction(1), 1),
)


def rows_of(seed: int, size: int) -> list[Row]:
    generator = random.Random(seed)
    people = [(number, number % 3) for number in range(12)]
    return [
        Row(generator.choice(people), (generator.randrange(9), 0), (generator.randrange(5),))
        for _ in range(size)
    ]


def reduced_of(
    blobs: list[bytes], bounder: Bounder
) -> tuple[list[bytes], list[Any], list[list[tuple[int, ...]]]]:
    """Return the lines of one shard, its votes, and (partition, people, weight) for each cap."""
    step = ReduceShards(bounder, RANKED, 2)
    step.start_bundle()
    lines = [blob for _, blob in step.process((3, blobs))]
    last = [(each.tag, each.value.value) for each in step.finish_bundle()]
    [votes] = [value for tag, value in last if tag == VOTES]
    packed = [blob for tag, value in last if tag == WEIGHED for blob in value[1:]]
    summary, _ = open_bucket(packed, [Measure(WEIGHTS)] * 2)
    weights = []
    for each in (summary.take(summary.measure == index) for index in range(2)):
        columns = each.partition[0], each.people, each.total
        weights.append([*zip(*map(np.ndarray.tolist, columns), strict=True)])
    counted = adaptive.votes_of(RANKED).counted(wire.unpack(votes))
    return lines, [[column.tolist() for column in each] for each in counted], weights


@pytest.mark.parametrize("bounds", [(6,), (6, 2), (6, None, 4), (6, 1, 3)])
@pytest.mark.parametrize("seed", range(2))
def test_votes_and_weights_are_those_of_the_people_however_the_rows_are_cut(
    bounds: tuple[int | None, ...], seed: int
) -> None:
    rows = rows_of(seed, 60)
    bounder = Bounder(ContributionBounds(*bounds), RANKED.fields, b"key")
    found = []
    for parts in (1, 3, 7):
        cut = [rows[part::parts] for part in range(parts)]
        blobs = [wire.pack(bounder.reduce(bounder.prepare(table_of(p)))) for p in cut]
        lines, *counts = reduced_of(blobs, bounder)
        settled = [bounder.settle_reduced(wire.unpack(blob)) for blob in lines]
        found.append((counts, [wire.pack(table) for table in settled]))
    assert found[0] == found[1] == found[2]
    reaches: dict[tuple[int, int], set[tuple[int, int]]] = collections.defaultdict(set)
    for row in rows:
        reaches[row.person].add(row.partition)
    most = bounder.bounds.max_partitions or 6
    kept = [min(len(own), most) for own in reaches.values()]
    ([votes, caps], [of_one, weights]), _ = found[0]
    for counted, seen in ((votes, np.searchsorted(RANKED.request.ladder, kept)), (caps, kept)):
        assert counted == [column.tolist() for column in np.unique(seen, return_counts=True)]
    # Where one partition of each person counts, it has all of their weight.
    assert sum(people for _, people, _ in of_one) == len(kept)
    assert all(total == people << 20 for _, people, total in of_one)
    assert {place for place, *_ in of_one} <= {place for place, *_ in weights}
    # Whoever is in k partitions adds at most 2^20 / sqrt(k) to each.
    each = weights_of(np.array(kept)).tolist()
    assert sum(people for _, people, _ in weights) == sum(kept)
    assert sum(total for *_, total in weights) == sum(map(math.prod, zip(kept, each, strict=True)))
    assert all(k * weight**2 <= 2**40 for k, weight in zip(kept, each, strict=True))


@pytest.mark.parametrize("lines", [1, 5, 1000])
def test_no_piece_cuts_a_person(lines: int) -> None:
    bounder = Bounder(ContributionBounds(6), RANKED.fields, b"key")
    table = bounder.reduce(bounder.prepare(table_of(rows_of(1, 80))))
    found = list(pieces(table, lines))
    assert sum(map(len, found)) == len(table)
    people = [set(map(tuple, piece.person.T.tolist())) for piece in found]
    assert sum(map(len, people)) == len(set.union(*people)) == 12
    assert all(len(piece) < lines + 6 for piece in found)
    assert list(pieces(table.take(slice(0, 0)), lines)) == []
