"""The record in words: what is protected, spent and limited, and what to beware of."""

import re

import pytest

import beam_dp as dp
from beam_dp.results import record_words
from beam_dp.results.released_metrics import Series, ShownMetric, metrics_of
from beam_dp.results.shown_numbers import shown
from tests.results.releases import made, record

MADE = {"a": "5", "b": "6"}


def test_it_says_what_the_numbers_protect() -> None:
    said = " ".join(record_words.protects(record()))
    assert "A person is a value of the column “who”, with all rows that have it." in said
    assert "at most 2.72 times as likely" in said and "a chance of at most 1e-6 (delta)" in said
    assert "was chosen privately: those with few people are missing" in said
    one = " ".join(record_words.protects(record(partitioned=False)))
    assert "zero-concentrated differential privacy says with rho = 0.5" in one
    assert "All rows are one partition" in one
    public = {
        **record(),
        "parameters": {"partitions": {"type": "PublicPartitions"}, "person": ["a", "b"]},
    }
    said = " ".join(record_words.protects(public))
    assert (
        "was settled beforehand" in said and "each row has two owners: “a” and “b”; each of" in said
    )


def test_every_cost_is_listed_and_they_are_the_budget() -> None:
    known = record()
    rows = record_words.spent(known)
    assert len(rows) == len(known["spent"]) and {len(row) for row in rows} == {5}
    names = {row[0] for row in rows}
    assert {"sum_spent", "median_ms", "histogram_age", "max_ms", "partition selection"} <= names
    assert all(float(row[4].split()[1].rstrip(",")) > 0 for row in rows)
    total = sum(float(row[4].split()[1].rstrip(",")) for row in rows)
    assert total == pytest.approx(1, abs=1e-3)


def test_limits_name_the_clip_and_the_bound() -> None:
    said = {entry.name: entry.text for entry in record_words.limits(record())}
    assert said["Partitions in which one person counts"].endswith(", chosen privately")
    assert (
        "one person counts for at most " in said["sum_spent"] and "(the clip)" in said["sum_spent"]
    )
    assert said["Selection of partitions"].startswith("kept for sure from")
    bounds = {"rows_per_partition": 3, "rows": 1_000}
    given = {**record(), "parameters": {"bounds": bounds}}
    said = {entry.name: entry.text for entry in record_words.limits(given)}
    assert said["Rows of one person in a partition"] == "at most 3"
    assert said["Rows of one person in all"] == "at most 1,000"


def warned(keys: list[str], **changed: object) -> str:
    release = made(keys, **changed)
    metrics = metrics_of(release.table, release.record)
    return "\n".join(record_words.warnings(release.record, metrics, len(keys)))


def test_every_warning_has_a_remedy() -> None:
    said = warned(["a", "b"])
    assert "6 of 12 numbers are of little use, and are marked with *. More people" in said
    assert "would help" in said and "epsilon" not in said
    assert warned(["a"]) == ""
    assert warned([]).startswith("No partition was released. A larger epsilon or delta, ")


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"epsilon": "11", "delta": "0"}, "An epsilon of 11 protects little"),
        (
            {"epsilon": "1", "delta": "1/1000"},
            "With a chance of 0.001 (delta) anything may be told",
        ),
        ({"epsilon": "10", "delta": "1/10000"}, ""),
        ({"rho": "1/2", "delta": "0"}, ""),
    ],
)
def test_an_unusual_budget_is_named(budget: dict[str, str], said: str) -> None:
    assert warned(["a"], budget=budget).startswith(said) and bool(said) == bool(
        warned(["a"], budget=budget)
    )


def test_a_trial_without_noise_cannot_be_taken_for_a_release() -> None:
    trial = {"NOT PRIVATE": "a trial: no noise was drawn"}
    release = made(["a"], **trial)
    assert record_words.title(release.record).startswith("NOT PRIVATE. Released statistics")
    assert warned(["a"], **trial) == "NOT PRIVATE: a trial: no noise was drawn."
    [said] = record_words.protects(release.record)
    assert said.startswith("Nothing and nobody: a trial: no noise was drawn.")
    assert str(dp.Released(*release)).endswith("\nNOT PRIVATE: a trial: no noise was drawn")
    assert "NOT PRIVATE" in dp.Released(*release)._repr_html_()


def test_people_beyond_the_bound_are_named() -> None:
    chosen = {"pairs_lost_estimate": 1234.5}
    said = warned(["a"], partitions_chosen=chosen, partitions_of_one_person=4)
    assert "rows in more than 4 partitions: about 1,234 pairs of a person and a partition" in said


def test_a_heading_names_the_input() -> None:
    assert (
        record_words.title({"job": {"input": "a/b/visits*.csv"}})
        == "Released statistics: visits*.csv"
    )
    assert record_words.title({}) == "Released statistics"
    assert record_words.summary(record(), 2).startswith(
        "4 statistics of 2 partitions, released on 2"
    )
    assert " of all rows, " in record_words.summary(record(partitioned=False), 1)


def test_the_example_is_a_number_of_the_page() -> None:
    release = made(["a", "b"])
    metrics = metrics_of(release.table, release.record)
    said = " ".join(record_words.reading(metrics))
    texts = [str(number) for metric in metrics for each in metric.series for number in each.numbers]
    assert "as sum_spent = 1,000 [799, 1,321]: 1,000 was released, and the true number lies" in said
    assert {"1,000 [799, 1,321]", "1,000 (rank ±73)"} <= set(texts)
    for shown_text in re.findall(r"[\d.,]+\*? (?:\[[^]]*\]|\(rank ±\d+\))", said):
        assert shown_text in texts


def test_a_page_without_an_interval_has_no_example() -> None:
    series = Series("count", "", (shown(float("nan"), 1.0, 2.0), shown(3.0, 2.5)))
    said = " ".join(record_words.reading([ShownMetric("Count", "", (series,))]))
    assert "in 95 of 100 releases. Each interval holds alone" in said and not re.search(
        r"\d \[", said
    )


def test_an_error_that_could_not_be_shown_is_not_called_of_little_use() -> None:
    """6 million rows of 1,000 clerks: nothing is known above, and the number may be close."""
    series = Series("count", "", (shown(6_033_404, 5_540_000.0, float("inf")),))
    metrics = [ShownMetric("Count", "", (series,))]
    said = " ".join(
        [*record_words.reading(metrics), *record_words.doubts(series.numbers, marked=True)]
    )
    assert (
        "* beside an open interval: their error could not be shown, and may be small or large"
        in said
    )
    assert "Marked with * and not hollow" in said and "little use" not in said
    assert not [each for each in record_words.warnings(record(), metrics, 1) if "little" in each]
