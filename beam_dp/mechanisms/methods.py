"""The metrics that have two releases of their own, and the preprocessed one of them.

Which errs less depends on the data (`docs/ratios_and_spreads.md` has measured numbers), and nothing
private may be looked at to choose; so the user says, by `method`.
"""

from beam_dp.mechanisms import checks, metrics, relational, unused
from beam_dp.mechanisms.metrics import Metric
from beam_dp.mechanisms.spreads import Preprocessed

_STATISTICS: dict[type[Metric], tuple[str, str]] = {
    metrics.Sum: ("sum", "sum"),
    metrics.Mean: ("mean", "mean"),
    relational.Median: ("median", "mean"),
    metrics.Max: ("maximum", "max"),
    metrics.Min: ("minimum", "min"),
}
"""What is computed, of which number per person. A maximum of maxima is that of all rows."""


def chosen(metric: Metric) -> Metric:
    """Return the metric as it is released: `Preprocessed`, if its method says so, else itself."""
    return preprocessed(metric) if is_preprocessed(metric) else metric


def has_method(metric: Metric) -> bool:
    """Return whether a metric has two releases."""
    return type(metric) in _STATISTICS and "method" in vars(metric)


def of_people(metric: Metric) -> tuple[str, str]:
    """Return what a metric computes of one number per person, and of which; else empty names."""
    if isinstance(metric, Preprocessed):
        return metric.of, metric.person_value
    return _STATISTICS.get(type(metric), ("", ""))


def preprocessed(metric: Metric) -> Preprocessed:
    """Return the preprocessed release of a metric that has two."""
    given = vars(metric)
    of, person_value = of_people(metric)
    if given.get("per") == "person" and of == "mean":
        person_value = "sum"
    return Preprocessed(
        metric.columns[0],
        of,
        name=metric.output,
        weight=metric.weight,
        unit=given["unit"],
        person_value=person_value,
    )


def is_preprocessed(metric: Metric) -> bool:
    """Return whether a metric has two releases and asks for the preprocessed one."""
    return has_method(metric) and vars(metric)["method"] == unused.PREPROCESSING


def check_removed(owner: str, metric: Metric) -> None:
    """Refuse a preprocessed metric where its removal loss is needed."""
    checks.require(
        not is_preprocessed(metric),
        f'{owner}: method must not be "preprocessing": what is preprocessed is not monotone, and '
        "has no removal loss. Leave it out.",
    )
