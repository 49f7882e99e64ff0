"""A bound that is chosen on the way: the same release as with that bound given, drawn once."""

import collections
import random
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from beam_dp.mechanisms.histogram_choice.reach import (
    SHARE,
    ReachChoice,
    edges_up_to,
    people_per_step,
)

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.first_choices import FirstVotes
from beam_dp.mechanisms.planning.program import Program, compile_program
from beam_dp.mechanisms.summaries import wire
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.columns.public_keys import PublicKeys
from beam_dp.transforms.stages import draw_once, guards
from beam_dp.transforms.stages.bound_and_summarise import (
    VOTES,
    ReduceShards,
    Summarise,
    pieces,
)
from beam_dp.transforms.stages.draw_once import Block
from beam_dp.transforms.stages.draws_folder import Barriers
from tests.doubles import ZeroNoise
from tests.reference import Row, table_of

DAYS = list(range(20))
PUBLIC = PublicKeys(tuple((day,) for day in DAYS))
METRICS = [dp.PeopleCount(), dp.Sum("value", clip=10)]
KEY = bytes(range(32))
SURE = dp.Budget(1e5)  # noise of a scale of 1e-3: 0 but for e^-1000

SEEN: dict[str, list[Any]] = {}


def see(element: Any, name: str) -> None:
    SEEN.setdefault(name, []).append(element)


@pytest.fixture(autouse=True)
def forget() -> None:
    SEEN.clear()


def seen(name: str) -> list[Any]:
    return SEEN.pop(name, [])


def visits(many: int = 6, reach: int = 15) -> list[dict[str, Any]]:
    """Return 600 people with 3 days each, some of them with `reach` days, and rows twice."""
    rows = []
    for person in range(600):
        days = reach if person < many else 3
        rows += [
            {"person": person, "day": (person + step) % 20, "value": 1.0} for step in range(days)
        ]
    return rows + rows[:50] + [{"person": 1, "day": 77, "value": 1.0}]


@pytest.fixture(autouse=True)
def drawn_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets are drawn apart here, so that partitions share no draw."""
    monkeypatch.setattr("beam_dp.mechanisms.planning.program.TOGETHER", 0)


def parts() -> tuple[Layout, Program, Bounder]:
    program = compile_program(METRICS, dp.Budget(1), edges_up_to(20), partitions=20)
    layout = Layout("person", ("day",), program.columns, PUBLIC, KEY)
    bounds = dp.ContributionBounds(program.edges[-1])
    return layout, program, Bounder(bounds, program.fields, KEY)


def chosen_in(given: Any, noise: Noise) -> Any:
    """Return the summaries, and the choice."""
    layout, program, bounder = parts()
    choose = draw_once.ChooseFirst(program, noise, Barriers())
    measures = program.measures, program.shared_measures
    whole = Summarise(layout, bounder, *measures, 2, 8, program, choose)
    return given | whole, whole.chosen


def run(
    rows: list[dict[str, Any]], **options: Any
) -> tuple[list[tuple[Any, ...]], list[ReachChoice]]:
    """Return the release with a bound that is chosen, and the choice, without noise."""
    layout, program, _ = parts()
    flags = PipelineOptions.from_dictionary({"runner": "FnApiRunner", **options})
    places = draw_once.BucketPartitions(layout, 2)
    with beam.Pipeline(options=flags) as pipeline:
        given = pipeline | beam.Create(rows)
        summaries, choice = chosen_in(given, ZeroNoise())
        drawn = summaries | draw_once.DrawOnce(program, places, ZeroNoise(), choice)
        _ = drawn | beam.FlatMap(Block.rows, PUBLIC) | "See" >> beam.Map(see, "rows")
        _ = choice | "Choice" >> beam.Map(see, "choice")
    return sorted(seen("rows")), [each.reach for each in seen("choice")]


def given_bound(rows: list[dict[str, Any]], program: Program) -> list[tuple[Any, ...]]:
    """Return the release with that bound given, without noise, by the same key."""
    layout, _, bounder = parts()
    bounds = dp.ContributionBounds(program.reach)
    narrow = Bounder(bounds, bounder.fields, KEY)
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        summarise = Summarise(
            layout, narrow, program.measures, program.shared_measures, 2, shards=8
        )
        summaries = pipeline | beam.Create(rows) | summarise
        drawn = summaries | draw_once.DrawOnce(
            program, draw_once.BucketPartitions(layout, 2), ZeroNoise()
        )
        _ = drawn | beam.FlatMap(Block.rows, PUBLIC) | "See" >> beam.Map(see, "rows")
    return sorted(seen("rows"))


@pytest.mark.parametrize("repeats", [0, 2])
def test_the_release_is_that_of_the_chosen_bound(repeats: int) -> None:
    rows = visits()
    found, chosen = run(rows, direct_runner_bundle_repeat=repeats)
    choice = chosen[0]
    assert choice.reach == 3
    people = dict(zip(choice.edges, choice.look.counts.tolist(), strict=True))
    assert people == {**dict.fromkeys(choice.edges, 0), 3: 594, 16: 6}
    program = parts()[1].at_bound(3)
    found = found[:: len(found) // 20]  # of repeated bundles every row is seen several times
    expected = given_bound(rows, program)
    assert [day for day, _ in found] == [day for day, _ in expected]
    for (_, drawn), (_, same) in zip(found, expected, strict=True):
        assert (drawn[0], drawn[3]) == (same[0], same[3])
        # What the chosen bound cuts is known from the histogram, and widens the intervals.
        assert drawn[1] <= same[1] < same[2] <= drawn[2] and drawn[4] <= same[4] < drawn[5]
    assert len(found) == 20 and sum(numbers[0] for _, numbers in found) == 600 * 3


@pytest.mark.parametrize("rows", [[], [{"person": 1, "day": 77, "value": 1.0}]])
def test_nobody_is_no_case_of_its_own(rows: list[dict[str, Any]]) -> None:
    found, chosen = run(rows)
    assert len(found) == 20 and [choice.top for choice in chosen] == [-1]
    assert chosen[0].look.counts.sum() == 0 and chosen[0].reach == 3


def released(rows: list[dict[str, Any]], **given: Any) -> list[dict[str, Any]]:
    public = dp.PublicPartitions(DAYS)
    known = {"partition": ["day"], "partitions": public, "budget": SURE, "metrics": METRICS}
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        release = dp.PrivateAggregate("person", **{**known, **given})
        drawn = pipeline | beam.Create(rows) | release
        _ = drawn | beam.Map(lambda row: row._asdict()) | "See" >> beam.Map(see, "rows")
    return seen("rows")


@pytest.mark.audit
def test_limits_on_rows_hold_beside_a_chosen_bound() -> None:
    rows = visits(many=600, reach=15)
    bounds = dp.ContributionBounds(rows=6, rows_per_partition=1)
    found = released(rows, bounds=bounds)
    assert sum(row["people_count"] for row in found) == 600 * 6
    assert sum(row["sum_value"] for row in found) == pytest.approx(600 * 6, abs=0.1)


class Wandering(Noise):
    """Noise that differs at every draw by far more than the people are."""

    def discrete_laplace(self, rate: Any, size: int) -> Any:
        return super().discrete_laplace(rate / 10**6, size)


def seen_by(rows: list[dict[str, Any]], **options: Any) -> Iterable[list[ReachChoice]]:
    """Return what two consumers see of a choice, one behind a shuffle of its own."""
    flags = PipelineOptions.from_dictionary({"runner": "FnApiRunner", **options})
    with beam.Pipeline(options=flags) as pipeline:
        given = pipeline | beam.Create(rows, reshuffle=False)
        _, choice = chosen_in(given, Wandering())
        _ = choice | "First" >> beam.Map(see, "first")
        _ = choice | beam.Reshuffle() | "Second" >> beam.Map(see, "second")
    return [[each.reach for each in seen(name)] for name in ("first", "second")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("repeats", [0, 1, 2])
def test_the_choice_is_drawn_once(repeats: int) -> None:
    """Two draws agree in 11 counts of a scale above 10^6 with a chance below 10^-60."""
    first, second = seen_by(visits(), direct_runner_bundle_repeat=repeats)
    counts = {tuple(choice.look.counts.tolist()) for choice in [*first, *second]}
    assert len(first) >= 1 and len(second) >= 1 and len(counts) == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("runner", ["FnApiRunner", *guards.RECOMPUTING])
def test_a_group_by_key_stands_between_the_choice_and_all_who_read_it(runner: str) -> None:
    flags = PipelineOptions(["--cluster_never_restarts"])
    pipeline = beam.Pipeline(runner=runner, options=flags)
    release = dp.PrivateAggregate(
        "person", METRICS, dp.Budget(1), ["day"], partitions=dp.PublicPartitions(DAYS)
    )
    _ = pipeline | beam.Create(visits()) | release
    steps = pipeline.to_runner_api().components.transforms.values()
    leaves = [step for step in steps if not step.subtransforms]
    made = {name: step for step in leaves for name in step.outputs.values()}

    def above(collection: str) -> Iterator[Any]:
        step = made[collection]
        yield step
        if "group_by_key" not in step.spec.urn:
            for given in step.inputs.values():
                yield from above(given)

    readers = [
        (step, given)
        for step in leaves
        for name, given in step.inputs.items()
        if "side" in name and made[given].unique_name.endswith("TakeStoredFirst")
    ]
    assert len(readers) >= 2
    for _, given in readers:
        way = list(above(given))
        assert "group_by_key" in way[-1].spec.urn
        assert not any("ChooseFirst" in step.unique_name for step in way)


def test_the_record_says_how_the_bound_was_chosen() -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        release = dp.PrivateAggregate(
            "person", METRICS, dp.Budget(1), ["day"], partitions=dp.PublicPartitions(DAYS)
        )
        _ = pipeline | beam.Create(visits()) | release
        _ = release.record() | "See" >> beam.Map(see, "record")
    [record] = seen("record")
    assert record["spent"][0]["on"] == "partitions per person"
    assert record["spent"][0]["epsilon"] == str(SHARE)
    said = record["partitions_chosen"]
    assert said["steps"][:4] == [1, 2, 3, 4] and len(said["noisy_people"]) == len(said["steps"])
    assert record["partitions_of_one_person"] in said["steps"]


@pytest.mark.parametrize("statistic", [dp.PeopleCount(), dp.Max("value")])
def test_where_nothing_is_released_nothing_is_chosen(statistic: Any) -> None:
    assert dp.RemovalLoss(statistic, "person", ["day"]).bounds == dp.ContributionBounds(None)
    with pytest.raises(ValueError, match='be a number or None, not "auto"'):
        dp.RemovalLoss(statistic, "person", ["day"], bounds=dp.ContributionBounds())


def test_people_with_an_epsilon_of_their_own_pay_for_no_search() -> None:
    def release(**given: Any) -> dp.PreprocessSensitivity:
        return dp.PreprocessSensitivity(
            dp.Sum("value"), "person", dp.Budget(2), ["day"],
            partitions=dp.PublicPartitions(DAYS), person_epsilon="e", epsilons=[1, 2], **given,
        )  # fmt: skip

    assert release()._aggregate.bounds == dp.ContributionBounds(None)
    with pytest.raises(ValueError, match='be a number or None, not "auto"'):
        release(bounds=dp.ContributionBounds())


def test_two_owners_have_no_bound() -> None:
    days = {"partition": ["day"], "partitions": dp.PublicPartitions(DAYS)}
    made = dp.PrivateAggregate(["from", "to"], [dp.Max("value")], dp.Budget(1), **days)
    assert made.bounds == dp.ContributionBounds(None)


def test_limits_on_rows_alone_choose_no_bound_where_none_can_be_chosen() -> None:
    rows = dp.ContributionBounds(rows=3)
    without = dp.ContributionBounds(None, rows=3)
    assert dp.RemovalLoss(dp.PeopleCount(), "person", ["day"], bounds=rows).bounds == without
    assert dp.BoundContributions("person", ["day"], rows).bounds == without
    days = {"partition": ["day"], "partitions": dp.PublicPartitions(DAYS)}
    blocks = [dp.BlackBox("value", max)]
    made = dp.PrivateAggregate("person", blocks, dp.Budget(9), bounds=rows, **days)
    assert made.bounds == without and "(partitions per person)" not in str(made.plan())
    both = [*blocks, dp.PeopleCount()]
    assert dp.PrivateAggregate("person", both, dp.Budget(9), **days).bounds.partitions is None
    with pytest.raises(ValueError, match='be a number or None, not "auto"'):
        dp.BoundContributions("person", ["day"], dp.ContributionBounds())


FIELDS = (Field(0, "sum"),)
EDGES = edges_up_to(6)


def rows_of(seed: int, size: int) -> list[Row]:
    generator = random.Random(seed)
    people = [(number, number % 3) for number in range(12)]
    return [
        Row(generator.choice(people), (generator.randrange(9), 0), (generator.randrange(5),))
        for _ in range(size)
    ]


def reduced_of(blobs: list[bytes], bounds: ContributionBounds) -> tuple[list[bytes], np.ndarray]:
    """Return the lines and the counts of one shard."""
    votes = FirstVotes(EDGES, ())
    step = ReduceShards(Bounder(bounds, FIELDS, b"key"), votes)
    step.start_bundle()
    lines = [blob for _, blob in step.process((3, blobs))]
    [counted] = step.finish_bundle()
    assert counted.tag == VOTES
    return lines, votes.people_per_step(wire.unpack(counted.value.value))


@pytest.mark.parametrize("bounds", [(6,), (6, 2), (6, None, 4), (6, 1, 3)])
@pytest.mark.parametrize("seed", range(5))
def test_the_counts_are_those_of_the_people_however_the_rows_are_cut(
    bounds: tuple[int | None, ...], seed: int
) -> None:
    rows = rows_of(seed, 60)
    limits = ContributionBounds(*bounds)
    bounder = Bounder(limits, FIELDS, b"key")
    found = []
    for parts in (1, 3, 7):
        cut = [rows[part::parts] for part in range(parts)]
        blobs = [wire.pack(bounder.reduce(bounder.prepare(table_of(p)))) for p in cut]
        lines, counts = reduced_of(blobs, limits)
        settled = [bounder.settle_reduced(wire.unpack(blob)) for blob in lines]
        found.append((counts.tolist(), [wire.pack(table) for table in settled]))
    assert found[0] == found[1] == found[2]
    reaches: dict[tuple[int, int], set[tuple[int, int]]] = collections.defaultdict(set)
    for row in rows:
        reaches[row.person].add(row.partition)
    most = bounder.bounds.reach or 6
    people = np.array([min(len(own), most) for own in reaches.values()])
    assert counts.tolist() == people_per_step(people, EDGES).tolist()


@pytest.mark.parametrize("lines", [1, 2, 5, 17, 1000])
def test_no_piece_cuts_a_person(lines: int) -> None:
    bounder = Bounder(ContributionBounds(6), FIELDS, b"key")
    table = bounder.reduce(bounder.prepare(table_of(rows_of(1, 80))))
    found = list(pieces(table, lines))
    assert sum(map(len, found)) == len(table)
    people = [set(map(tuple, piece.person.T.tolist())) for piece in found]
    assert sum(map(len, people)) == len(set.union(*people)) == 12
    assert all(len(piece) < lines + 6 for piece in found)
    assert list(pieces(table.take(slice(0, 0)), lines)) == []
