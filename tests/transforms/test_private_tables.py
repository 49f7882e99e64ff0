"""Several tables of one run: every total is the sum of its parts, in every output file."""

import collections
import decimal
import json
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.mechanisms.numerics.checks import ParameterError
from beam_dp.transforms.stages import guards
from beam_dp.transforms.stages.output_names import OTHER
from pipelines import aggregate
from tests.row_files import read, write

NAMES = ("region", "store", "hour", "kind")
METRICS = [dp.Count(), dp.Sum("spent"), dp.Mean("spent"), dp.Sum("year"), dp.PeopleCount()]


def rows(people: int = 400) -> list[dict[str, Any]]:
    random = np.random.default_rng(3)
    made = []
    for person in range(people):
        for _ in range(random.integers(1, 6)):
            region = "nnnsw"[random.integers(5)]
            store, hour, kind = f"{region}{random.integers(3)}", *random.integers(0, 2, 2).tolist()
            values = {"spent": float(random.integers(-20, 90)) / 4, "year": 2000 + hour}
            made.append(
                dict(zip(NAMES, (region, store, hour, kind), strict=True), who=person, **values)
            )
    return made


ROWS = rows()
DEEP = [list(NAMES[:3]), list(NAMES[:2]), "region", "total"]
SHAPES: dict[str, tuple[list[str], list[Any], str]] = {
    "two": (["region", "store"], ["total"], "listed"),
    "five": (list(NAMES), DEEP, "listed"),
    "five, private": (list(NAMES), DEEP, "private"),
    "public above private": (
        ["region", "store"],
        [{"partition": ["region"], "partitions": dp.PublicPartitions(["n", "s"])}, "total"],
        "private",
    ),
    "read again": (["region", "store"], ["region", "total"], "private"),
    "the first is coarse": (["region"], [["region", "store"], "total"], "private"),
    "crossed": (["region", "hour"], ["region", "hour", "total"], "product"),
    "crossed, private": (["region", "hour"], ["region", "hour", "total"], "private"),
    "crossed, one public margin": (
        ["region", "hour"],
        [{"partition": "region", "partitions": dp.PublicPartitions(["n", "s"])}, "hour", "total"],
        "private",
    ),
}


def released(
    shape: str, metrics: list[Any] = METRICS, epsilon: float = 20, delta: float = 1e-4
) -> list[dp.Released]:
    by, also_by, kind = SHAPES[shape]
    listed: Any = None
    if kind == "listed":
        listed = dp.PublicPartitions(sorted({tuple(row[name] for name in by) for row in ROWS}))
    elif kind == "product":
        values = {name: sorted({row[name] for row in ROWS}) for name in by}
        listed = dp.PublicPartitions.product(**values)
    given = {"person": "who", "partition": by, "partitions": listed, "metrics": metrics}
    given |= {"budget": dp.Budget(epsilon, delta), "also_by": also_by, "show_errors": True}
    first = dp.release(pa.Table.from_pylist(ROWS), **given)
    return [first, *first.others]


def tables_in(found: list[dp.Released]) -> list[dict[str, Any]]:
    names = [[n for n in NAMES if n in each.table.column_names] for each in found]
    return [{"by": by, "rows": t.table.to_pylist()} for by, t in zip(names, found, strict=True)]


def exact(cell: Any) -> decimal.Decimal:
    return decimal.Decimal(str(cell))


def are_equal(parts: decimal.Decimal, total: decimal.Decimal) -> bool:
    """Return whether two sums of millionths are equal, as far as floats hold these (to 9e9)."""
    close = abs(parts - total) <= abs(total) * decimal.Decimal(2) ** -52
    return parts == total or (close and abs(total) > 9 * 10**9)


def assert_agree(tables: list[dict[str, Any]], names: list[str]) -> int:
    """Assert that each row which has parts is their sum, as decimals; return how many have.

    Args:
        tables: of each the columns `by` and the `rows`.
        names: of what adds up.
    """
    checked = 0
    for fine in tables:
        for coarse in tables:
            between = [t for t in tables if {*coarse["by"]} < {*t["by"]} < {*fine["by"]}]
            if between or not {*coarse["by"]} < {*fine["by"]}:
                continue
            sums: Any = collections.defaultdict(decimal.Decimal)
            for row in fine["rows"]:
                other = [n for n in fine["by"] if row[n] in (None, "")]
                beside = {*fine["by"]} - {*coarse["by"]}
                if row.get(OTHER) in (True, "true") and {*other} != beside:
                    continue  # (other) of another margin
                for name in names:
                    sums[*(str(row[n]) for n in coarse["by"]), name] += exact(row[name])
            for row in coarse["rows"]:
                if row.get(OTHER) in (True, "true"):
                    continue
                checked += 1
                for name in names:
                    key = *(str(row[n]) for n in coarse["by"]), name
                    found = coarse["by"], fine["by"], row
                    assert are_equal(sums[key], exact(row[name])), found
    return checked


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_total_is_the_sum_of_its_parts(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of public partitions with much noise; private ones must be found.

    Also where a runner may compute again: there the stored draws are read.
    """
    monkeypatch.setattr(guards, "may_recompute", lambda _: shape == "read again")
    epsilon = 20 if SHAPES[shape][2] == "private" else 0.5
    tables = tables_in(released(shape, epsilon=epsilon))
    names = [
        name
        for name in ("count", "sum_spent", "sum_year")
        if not any(row[name] is None for table in tables for row in table["rows"])
    ]
    assert "count" in names and (len(names) == 3 or SHAPES[shape][2] == "private")
    assert assert_agree(tables, names)
    for table in tables:
        for row in table["rows"]:
            assert type(row["count"]) is int and row["count"] >= 0
            for name in names:
                assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
            if row["mean_spent"] is not None and "sum_spent" in names:
                assert row["mean_spent"] == pytest.approx(row["sum_spent"] / row["count"])


def test_nothing_selected_leaves_the_public_table_above_it() -> None:
    """A store of n people is selected with a chance of about n delta: 1e-12 for all of them."""
    several = [dp.Count(), dp.Quantiles("spent", [0.2, 0.8])]
    stores, regions, total = released("public above private", several, 1e-2, 1e-15)
    assert (stores.table.num_rows, total.table.num_rows) == (2, 1)
    assert set(stores.table[OTHER].to_pylist()) == {True} and regions.table.num_rows == 2


CSV = ["--epsilon", "9", "--delta", "1e-4", "--count", "--sum", "spent", "--mean", "spent"]


def test_a_job_writes_files_that_add_up_and_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, output = write(tmp_path / "rows.csv", ROWS), str(tmp_path / "out.csv")
    words = ["--input", source, "--output", output, "--person", "who", *CSV, "--people_count"]
    words += ["--partition", "region,store", "--also_by", "region", "--also_by", "total"]
    page = ["--report", str(tmp_path / "out.html")]
    assert aggregate.main([*words, *page, "--runner", "FnApiRunner"]) == 0
    bys = {"": ["region", "store"], "_by_region": ["region"], "_total": []}
    tables = [{"by": by, "rows": read(tmp_path / f"out{end}.csv")} for end, by in bys.items()]
    assert assert_agree(tables, ["count", "sum_spent"]) == 4
    said = capfd.readouterr().out
    assert "(other)" in said and "Totals agree, at no cost, of count, sum_spent" in said
    assert "As drawn: people_count" in said
    for end in bys:
        record = json.loads((tmp_path / f"out{end}.csv.json").read_text())
        assert record["budget"]["epsilon"] == "9"  # a number is made of the draws of all tables
        assert "Totals agree" in record["job"]["tables"]
    text = (tmp_path / "out.html").read_text()
    listed = [row for row in tables[1]["rows"] if row[OTHER] == "false"]
    assert text.count("<details><summary>") == len(listed) + 2  # all rows, and the record
    assert "All rows of the table together, but for (other): count" in text
    again = dp.Released.read(output)
    assert again.total().keys() == {"count", "sum_spent"}


def test_a_table_costs_all_that_its_numbers_are_made_of() -> None:
    agreeing, apart = (tables_of(["total"], ["region"], totals=t) for t in ("agree", "apart"))
    assert [table.cost() for table in agreeing.tables] == [agreeing.first.cost()] * 2
    assert sum(table.cost().amount for table in apart.tables) == 1


def test_a_total_of_some_rows_has_an_interval() -> None:
    """The noises are independent: it is less wide than all intervals together.

    But for a clip that is too low, which 1 of 40 releases have: all of 8 with a chance of 1e-12.
    """

    def is_narrow() -> bool:
        made = released("two", [dp.Count()], epsilon=8)[0]
        table = made.table.to_pylist()
        places = list(range(0, len(table), 2))
        number, low, high = made.total(places)["count"]
        for wrong in (["1"], [0, len(table)], [-1], [True]):
            with pytest.raises(ValueError, match="rows must be places in the table, 0 to "):
                made.total(wrong)
        assert number == sum(table[at]["count"] for at in places) and low <= number <= high
        for record in ({}, {"noise_of_sums": {}}):
            changed = {**made.record, "noise_of_sums": {}, **record}
            assert dp.Released(made.table, changed).total() == {}
        widths = [table[at]["count_high"] - table[at]["count_low"] for at in places]
        return bool(high - low < 0.9 * sum(widths))

    assert any(is_narrow() for _ in range(8))


def tables_of(also_by: list[Any], partition: list[str], **more: Any) -> dp.PrivateTables:
    keys = {"metrics": [dp.Count()], **more}
    totals = keys.pop("totals", "agree")
    first = dp.PrivateAggregate("who", budget=dp.Budget(1, 1e-6), partition=partition, **keys)
    return dp.PrivateTables(first, also_by, totals)


def test_the_step_that_makes_tables_agree_reads_drawn_blocks_and_nothing_else() -> None:
    """Its input is an impulse, its side inputs are behind the barriers of the tables."""
    run = tables_of(["region", "total"], ["region", "store"])
    pipeline = beam.Pipeline("FnApiRunner")
    _ = pipeline | beam.Create([beam.Row(who=1, region="a", store="b")]) | run
    steps: dict[str, Any] = {}

    class Visitor(beam.pipeline.PipelineVisitor):
        def visit_transform(self, applied: Any) -> None:
            steps[applied.full_label.split("/")[-1]] = applied

    pipeline.visit(Visitor())
    [step] = [each for name, each in steps.items() if name[:5] == "Agree" and each.side_inputs]
    [start] = step.inputs
    assert isinstance(start.producer.transform, beam.Impulse)
    drawn = [table._drawn.source for table in run.tables if table._drawn]
    assert {side.pvalue for side in step.side_inputs} == {*drawn} and len(drawn) == 3
    for source in drawn:
        before = source.producer
        while not isinstance(before.transform, beam.GroupByKey):
            assert "TakeStored" in before.full_label
            [before] = [each.producer for each in before.inputs]


WRONG: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "no nest": (["hour"], {}, "tables that nest"),
    "three margins": (["region", "store", "total", "hour"], {}, "Three and more crossed"),
    "other keys": (
        [{"partition": "region", "partitions": dp.PublicPartitions(["x"])}],
        {"partitions": dp.PublicPartitions([("n", "n0")])},
        "public keys must be the same by 'region'",
    ),
    "private above public": (
        [{"partition": "region", "partitions": dp.PrivatePartitions()}],
        {"partitions": dp.PublicPartitions([("n", "n0")])},
        "partitions must be public by 'region'",
    ),
    "not all pairs": (
        ["region", "store"],
        {"partitions": dp.PublicPartitions([("n", "n0"), ("s", "s0")])},
        "all pairs of the keys",
    ),
    "a word": (["region"], {"totals": "maybe"}, "totals must be"),
    "a mapping": ([{"partition": "region", "share": 2}], {}, "have a partition"),
    "a misspelt column": (["regoin"], {}, "Did you mean region"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_agree_is_refused_when_it_is_built(name: str) -> None:
    also_by, more, said = WRONG[name]
    with pytest.raises(ParameterError, match=said):
        tables_of(also_by, ["region", "store"], **more)
    if name not in ("a word", "a mapping"):
        tables_of(also_by, ["region", "store"], **more, totals="apart")


def test_a_text_is_no_list_of_tables() -> None:
    with pytest.raises(TypeError, match=r"Write also_by=\['total'\]"):
        tables_of("total", ["region"])


def test_what_does_not_add_up_stays_apart() -> None:
    for name, given in (
        ("bounds", dp.ContributionBounds(2)),
        ("bounds", dp.ContributionBounds(rows_per_partition=3)),
        ("metrics", [dp.Count(clip=3)]),
        ("metrics", [dp.PeopleCount(), dp.Median("spent")]),
    ):
        run = tables_of(["region"], ["region", "store"], **{name: given})
        assert run.agreeing == [] and "need not agree" in run.summary
        assert [table.has_other for table in run.tables] == [False, False]
