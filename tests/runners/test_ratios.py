"""Shares, and the audit of a function, on every runner: their work is spread over its workers."""

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to

import beam_dp as dp
from beam_dp.mechanisms import sensitivity

ROWS = [
    {"person": n % 300, "country": "de" if n % 3 else "fr", "clicked": str(n % 4 == 0)}
    for n in range(900)
]
HISTOGRAMS = list(sensitivity.histograms(3, 3))


def late(word: str) -> bool:
    return word > "Falsehood"


BOUNDED = "kulesza_suresh_wang"
WAYS = [
    ("value", 3, {"equals": 1}),
    ("function", 3, {"equals": late}),
    ("value of bounded people", 6, {"equals": 1, "method": BOUNDED}),
    ("function of bounded people", 6, {"equals": late, "method": BOUNDED}),
]


def mean(x: object) -> float:
    people = int(x.sum())
    return int(x @ range(3)) / people if people else 0


def rounded(row: beam.Row, digits: int) -> tuple[str, float, bool]:
    return (
        row.country,
        round(row.ratio_clicked, digits),
        row.ratio_clicked_high - row.ratio_clicked_low < 0.02,
    )


def flat(row: beam.Row) -> tuple[tuple[int, ...], float]:
    return tuple(row.histogram), row.sensitivity


def test_shares_are_right_everywhere(pipeline_options: PipelineOptions) -> None:
    """At epsilon 10,000 noise of bounded people is 0 but for a chance below e^-1000.

    That of weighed people is below 0.1 of a row but for one below e^-50: it is drawn in finer steps.
    """
    keys = dp.PublicPartitions(["de", "fr"])
    bounds = dp.ContributionBounds(2, rows_per_partition=3)
    with beam.Pipeline(options=pipeline_options) as p:
        shares = [
            p
            | name >> beam.Create(ROWS)
            | f"Share {name}"
            >> dp.PrivateRatio(
                "clicked", "person", dp.Budget(1e4), ["country"], bounds, keys, **how
            )
            | f"Rounded {name}" >> beam.Map(rounded, digits)
            for name, digits, how in WAYS
        ]
        expected = [("de", 0.25, True), ("fr", 0.25, True)]
        for place, found in enumerate(shares):
            assert_that(found, equal_to(expected), label=f"Expected {place}")


def test_an_audit_is_right_everywhere(pipeline_options: PipelineOptions) -> None:
    with beam.Pipeline(options=pipeline_options) as p:
        found = p | beam.Create(HISTOGRAMS) | dp.LocalSensitivity(mean) | beam.Map(flat)
        expected = [(x, float(sensitivity.local_sensitivity(mean, x))) for x in HISTOGRAMS]
        assert_that(found, equal_to(expected))
