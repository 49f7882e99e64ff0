"""The noise is drawn once: what lies behind the barrier sees the same numbers, always."""

import collections
import dataclasses
import itertools
import pickle
import random
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.columns.public_keys import KeyList, PublicKeys
from beam_dp.transforms.stages import draw_once, guards, quick_steps
from beam_dp.transforms.stages.bound_and_summarise import Summarise
from beam_dp.transforms.stages.draw_once import Block
from tests.doubles import compile_program

# A release of this scale takes each value with probability below 2^-19: that two of them are equal
# by chance, for all of 8 partitions, has probability below 2^-150.
FAINT = dp.Budget(2.0**-20)
PUBLIC = [(f"day {number}",) for number in range(8)]
PUBLIC_KEYS = PublicKeys(KeyList.of(tuple(PUBLIC)))
ROWS = [{"person": number, "day": f"day {number % 8}", "value": 1.0} for number in range(80)]
METRICS = [dp.PeopleCount(), dp.Count()]
SEEN: dict[str, list[Any]] = {}


def see(element: Any, name: str) -> Any:
    SEEN.setdefault(name, []).append(element)
    return element


@pytest.fixture(autouse=True)
def forget() -> None:
    SEEN.clear()


def aggregate() -> dp.PrivateAggregate:
    return dp.PrivateAggregate(
        "person", METRICS, FAINT, ["day"], partitions=dp.PublicPartitions(PUBLIC)
    )


def read_twice(transform: beam.PTransform, rows: list[Any] | None = None, **options: Any) -> None:
    """Run a release with two consumers, one of them behind a shuffle of its own."""
    with beam.Pipeline("FnApiRunner", PipelineOptions([], **options)) as pipeline:
        found = pipeline | beam.Create(ROWS if rows is None else rows, reshuffle=False) | transform
        _ = found | "First" >> beam.Map(see, "first")
        _ = found | "Shuffle" >> beam.Reshuffle() | "Second" >> beam.Map(see, "second")


def release_of(found: list[Any]) -> list[list[Any]]:
    """Return the rows in groups of one whole release, each in the order of its keys."""
    size = len(PUBLIC)
    return [sorted(map(tuple, found[start : start + size])) for start in range(0, len(found), size)]


@pytest.fixture(params=["a stored GroupByKey", "a side input"])
def barrier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both barriers, on one runner."""
    if request.param == "a side input":
        monkeypatch.setattr(guards, "RECOMPUTING", ("FnApiRunner",))


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("barrier")
def test_two_consumers_and_repeated_bundles_see_the_same_numbers() -> None:
    read_twice(aggregate(), direct_runner_bundle_repeat=1)
    first, second = release_of(SEEN["first"]), release_of(SEEN["second"])
    assert len(first) == 2
    assert all(group == first[0] for group in [*first, *second])


class WithoutBarrier(beam.PTransform):
    """A broken twin: the release, and nothing behind the draw."""

    def __init__(self, whole: draw_once.DrawOnce) -> None:
        super().__init__()
        self._whole = whole

    def expand(self, summaries: beam.PCollection) -> beam.PCollection:
        whole = self._whole
        given = whole.program, whole.partitions, whole.noise, whole.draws
        draw = quick_steps.flat_mapped(draw_once.draw_bucket, *given)
        drawn = summaries | "Draw" >> draw | beam.Filter(lambda one: one[0] != draw_once.START)
        blocks = drawn | beam.Values() | "Blocks" >> beam.Values()
        return blocks | beam.Map(draw_once.combined, given[0])


def pieces() -> tuple[Summarise, draw_once.DrawOnce]:
    program = compile_program([dp.PeopleCount()], FAINT, 8, bound=8, partitions=8)
    layout = Layout("person", ("day",), (), PUBLIC_KEYS, bytes(32))
    bounder = Bounder(ContributionBounds(None), program.fields, layout.key)
    whole = draw_once.DrawOnce(program, draw_once.BucketPartitions(layout, 1))
    return Summarise(layout, bounder, program.measures), whole


def seen_behind(step: beam.PTransform, summarise: Summarise, **options: Any) -> list[Any]:
    SEEN.clear()
    with beam.Pipeline("FnApiRunner", PipelineOptions([], **options)) as pipeline:
        drawn = pipeline | beam.Create(ROWS) | summarise | step
        _ = drawn | beam.FlatMap(Block.rows, PUBLIC_KEYS) | "See" >> beam.Map(see, "step")
    return SEEN["step"]


def test_repeated_bundles_show_what_a_missing_barrier_does() -> None:
    summarise, whole = pieces()
    broken = seen_behind(WithoutBarrier(whole), summarise, direct_runner_bundle_repeat=1)
    first, second = release_of(broken)
    assert first != second
    first, second = release_of(seen_behind(whole, summarise, direct_runner_bundle_repeat=1))
    assert first == second


class FailsTwice(beam.DoFn):
    """A consumer whose first two attempts fail after it has read the first number."""

    def process(self, row: Any) -> Iterator[Any]:
        if row[0] == PUBLIC[0]:
            see(row, "attempts")
            if len(SEEN["attempts"]) < 3:
                raise RuntimeError
        yield row


def test_a_retried_consumer_sees_the_same_numbers() -> None:
    # This runner retries a failed bundle, which the in-memory one does not; it is refused by the
    # transforms of the package, so their last step stands here by itself, behind summaries that
    # another runner made.
    summarise, whole = pieces()
    SEEN.clear()
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        packed = pipeline | beam.Create(ROWS) | summarise
        listed = packed | beam.MapTuple(lambda bucket, blobs: (bucket, list(blobs)))
        _ = listed | "See" >> beam.Map(see, "summaries")
    summaries = SEEN["summaries"]
    with beam.Pipeline(runner=BundleBasedDirectRunner()) as pipeline:
        released = pipeline | beam.Create(summaries) | whole
        found = released | beam.FlatMap(Block.rows, PUBLIC_KEYS) | beam.ParDo(FailsTwice())
        _ = found | "See" >> beam.Map(see, "at last")
    attempts = SEEN["attempts"]
    assert len(attempts) == 3 and attempts[0] == attempts[1] == attempts[2]
    assert [row for row in SEEN["at last"] if row[0] == PUBLIC[0]] == attempts[:1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("day", "public", "rows"),
    [("day 0", None, 1), ("nowhere", None, 0), ("nowhere", dp.PublicPartitions(PUBLIC), 8)],
)
def test_both_barriers_release_the_same(
    day: str, public: Any, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At epsilon 10^9 the noise is 0, and all who are there are kept, but for e^-900."""
    given = [row for row in ROWS if row["day"] == day]
    budget, bounds = dp.Budget(1e9, 0.0 if public else 1e-6), dp.ContributionBounds(1)
    found = []
    for names in ((), ("FnApiRunner",)):
        monkeypatch.setattr(guards, "RECOMPUTING", names)
        SEEN.clear()
        read_twice(dp.PrivateAggregate("person", METRICS, budget, ["day"], bounds, public), given)
        found.append([tuple(row) for row in SEEN.get("first", [])])
    assert found[0] == found[1] and len(found[0]) == rows


def steps(
    transform: beam.PTransform, runner: str = "FnApiRunner"
) -> beam_runner_api_pb2.Components:
    flags = PipelineOptions(["--cluster_never_restarts"])
    pipeline = beam.Pipeline(runner=runner, options=flags)
    _ = pipeline | beam.Create(ROWS) | transform
    return pipeline.to_runner_api().components


def producers(components: Any) -> dict[str, Any]:
    """Return the leaf step that makes each collection."""
    return {
        made: step
        for step in components.transforms.values()
        if not step.subtransforms
        for made in set(step.outputs.values()) - set(step.inputs.values())
    }


GROUP_BY_KEY = "beam:transform:group_by_key:v1"


def above(collection: str, made_by: dict[str, Any]) -> Iterator[Any]:
    """Return the steps above a collection, down to the next GroupByKey."""
    step = made_by[collection]
    yield step
    if step.spec.urn != GROUP_BY_KEY:
        for given in step.inputs.values():
            yield from above(given, made_by)


RELEASES: dict[str, Any] = {
    "aggregate": aggregate,
    # (With less than 2^-14 the search would look at too many people.)
    "inverse": lambda: dp.ShiftedInverse(dp.Max("value"), "person", dp.Budget(2.0**-13)),
    "select": lambda: dp.SelectPartitions(
        "person", ["day"], dp.Budget(1, 1e-6), dp.ContributionBounds(1)
    ),
    "private": lambda: dp.PrivateAggregate(
        "person", METRICS, dp.Budget(1, 1e-6), ["day"], dp.ContributionBounds(1)
    ),
    "ranked": lambda: dp.PrivateAggregate(
        "person", [*METRICS, dp.DistinctCount("value", clip=1)], dp.Budget(1, 1e-6), ["day"]
    ),
}


@pytest.mark.parametrize("name", RELEASES)
def test_a_group_by_key_stands_between_each_draw_and_the_output(name: str) -> None:
    components = steps(RELEASES[name]())
    made_by = producers(components)
    used = {given for step in components.transforms.values() if not step.subtransforms
            for given in step.inputs.values()}  # fmt: skip
    ends = [collection for collection in made_by if collection not in used]
    # Votes, or lines of people, that nobody asks for are made before any draw.
    [end] = [each for each in ends if "ReduceShards" not in made_by[each].unique_name]
    reached = list(above(end, made_by))
    assert any(step.spec.urn == GROUP_BY_KEY for step in reached)
    names = [step.unique_name for step in reached]
    assert not any(word in name for name in names for word in ("Draw", "Choose", "Settle"))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("runner", guards.RECOMPUTING)
@pytest.mark.parametrize("name", RELEASES)
def test_where_draws_can_be_repeated_all_comes_from_a_side_input(name: str, runner: str) -> None:
    """Its other input is one empty element of the same GroupByKey, so that Flink stores both."""
    components = steps(RELEASES[name](), runner)
    made_by = producers(components)
    [end] = [step for step in components.transforms.values() if "/Combine" in step.unique_name
               and not step.subtransforms]  # fmt: skip
    sides = [given for key, given in end.inputs.items() if "side_input" in key]
    mains = [given for key, given in end.inputs.items() if "side_input" not in key]
    assert len(sides) == len(mains) == 1
    stored, start = list(above(sides[0], made_by)), list(above(mains[0], made_by))
    assert [step.unique_name.split("/")[-1] for step in start[:-1]] == ["StartCombining"]
    assert stored[-1].spec.urn == GROUP_BY_KEY and stored[-1] == start[-1]
    groups = [(key, [(0, draw_once.Block(np.arange(3)))]) for key in (draw_once.START, 0, 1)]
    assert [element for group in groups for element in draw_once.started(group)] == [b""]


@pytest.mark.parametrize("runner", ["FnApiRunner", guards.RECOMPUTING[0]])
def test_a_group_by_key_stands_between_each_choice_and_all_who_read_it(runner: str) -> None:
    components = steps(RELEASES["ranked"](), runner)
    made_by = producers(components)
    read: collections.Counter[str] = collections.Counter()
    for step in made_by.values():
        sides = [given for place, given in step.inputs.items() if "side_input" in place]
        names = [made_by[side].unique_name.split("/")[-1] for side in sides]
        if step.unique_name.endswith("/DrawNumbers"):
            assert sorted(names) == ["TakeStoredClips", "TakeStoredFirst", "TakeStoredSelected"]
        for side, name in zip(sides, names, strict=True):
            read[name] += 1
            reached = list(above(side, made_by))
            words = ("Choose", "SelectPartitions") if name.startswith("TakeStored") else ()
            assert not any(word in one.unique_name for one in reached for word in words)
            assert reached[-1].spec.urn == GROUP_BY_KEY or not words
    assert min(read["TakeStoredFirst"], read["TakeStoredSelected"]) >= 2


def test_of_several_draws_one_is_read_in_the_order_of_its_numbers() -> None:
    first, second, again = (draw_once.Block(np.arange(size)) for size in (1, 2, 3))
    drawn = [(1, second), (0, first), (1, again)]
    assert list(draw_once.stored_together((0, drawn))) == [first, second]
    assert draw_once.stored((0, [first, again])) is first


def random_attributes(value: Any, depth: int = 0) -> Iterable[str]:
    """Return the names of the types below a value that hold random state."""
    kinds = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
    if isinstance(value, kinds):
        yield type(value).__name__
    parts = vars(value).values() if hasattr(value, "__dict__") and depth < 8 else ()
    parts = value if isinstance(value, (list, tuple)) else parts
    for part in parts:
        yield from random_attributes(part, depth + 1)


def test_no_step_carries_randomness_from_the_build_to_the_workers() -> None:
    _, whole = pieces()
    given = whole.program, whole.partitions, whole.noise, whole.draws
    assert list(random_attributes(given)) == [] and dataclasses.fields(Noise) == ()
    copies = [pickle.loads(pickle.dumps(given)) for _ in range(2)]
    drawn = [dict(draw_once.draw_bucket((0, []), *copy))[0][1].drawn for copy in copies]
    first, second = (each[0].values.tolist() for each in drawn)
    assert first != second


def run_twice(*flags: str) -> None:
    options = PipelineOptions(["--runner=FnApiRunner", *flags])
    pipeline = beam.Pipeline(options=options)
    _ = pipeline | beam.Create(ROWS) | aggregate() | "See" >> beam.Map(see, "runs")
    for _ in range(2):
        pipeline.run().wait_until_finish()


def test_a_second_run_of_one_pipeline_is_refused() -> None:
    """Bundles that are tried again belong to one run."""
    with pytest.raises(ValueError, match="PrivateAggregate: the pipeline must be run once.*folder"):
        run_twice("--direct_runner_bundle_repeat=1")
    first, again = release_of(SEEN["runs"])
    assert first == again
    assert "Running a job twice spends twice" in " ".join((dp.__doc__ or "").split())


def test_a_second_run_with_a_folder_reads_the_draws_of_the_first(tmp_path: Path) -> None:
    run_twice(f"--draws_folder={tmp_path}")
    first, second = release_of(SEEN["runs"])
    assert first == second


@pytest.mark.parametrize("drawn", [True, False])
def test_what_was_selected_counts_where_a_second_run_has_no_rows(
    tmp_path: Path, drawn: bool
) -> None:
    path, metric, delta = tmp_path / "rows.csv", dp.Count(clip=1), Fraction(1, 10**6)
    path.write_text("person,day\n" + "".join(f"{n},{n % 8}\n" for n in range(400)))
    options = PipelineOptions(["--runner=FnApiRunner", f"--draws_folder={tmp_path / 'kept'}"])
    pipeline = beam.Pipeline(options=options)
    table = dp.PrivateAggregate("person", [metric], dp.Budget(20, delta), ["day"])
    released = pipeline | dp.ReadRows(str(path), columns=["person", "day"]) | table
    _ = released | "SeeRows" >> beam.Map(see, "rows")
    _ = table.record() | "SeeRecord" >> beam.Map(see, "record")
    pipeline.run().wait_until_finish()
    path.write_text("person,day\n")
    for kept in [] if drawn else (tmp_path / "kept").glob("*/bucket-*"):
        kept.unlink()
    pipeline.run().wait_until_finish()
    rows = SEEN["rows"]
    first, second = SEEN["record"]
    assert first == second
    assert len(rows) == 16 and {row.day for row in rows[:8]} == {row.day for row in rows[8:]}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", RELEASES)
def test_every_release_in_a_block_is_run_once(name: str) -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        _ = pipeline | beam.Create(ROWS) | RELEASES[name]()
        _ = pipeline | "Again" >> beam.Create(ROWS) | "Other" >> RELEASES[name]()
    with pytest.raises(ValueError, match="the pipeline must be run once, not twice"):
        pipeline.run()


def test_a_run_that_failed_may_have_drawn() -> None:
    pipeline = beam.Pipeline(runner="FnApiRunner")
    _ = pipeline | beam.Create(ROWS) | aggregate() | beam.Map(fail)
    with pytest.raises(RuntimeError, match="the disk is gone"):
        pipeline.run()
    with pytest.raises(ValueError, match="run once, not twice"):
        pipeline.run()


def fail(_: Any) -> None:
    raise RuntimeError("the disk is gone")


def test_sums_over_blocks_do_not_depend_on_their_order() -> None:
    tables = [np.full((3, 2), each) for each in (1e16, 1.0, 1.0, 1e-3, 3e15, 1.0, 7.7)]
    wanted = draw_once.added(tables)
    assert wanted.shape == (3, 2)
    found = [draw_once.added(list(each)) for each in itertools.permutations(tables, 7)][::97]
    assert all((each == wanted).all() for each in found)
    naive = {float(sum(table[0, 0] for table in each)) for each in itertools.permutations(tables)}
    assert len(naive) > 1  # plain sums differ
    assert draw_once.added([np.zeros((0, 2))]).shape == (0, 2)
