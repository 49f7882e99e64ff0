"""The record of a release in words, for a reader who did not run the job."""

import math
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from beam_dp.mechanisms.numerics.short_numbers import shortened
from beam_dp.mechanisms.planning.plan import several_owners
from beam_dp.results import shown_numbers
from beam_dp.results.plain_text import plain
from beam_dp.results.released_metrics import Series, ShownMetric, owners_of
from beam_dp.results.shown_numbers import MARK, UNKNOWN, ShownNumber

_MUCH, _MANY = 10, Fraction(1, 10_000)
_LARGE = 1e4  # from here on a number has four digits before the point
NOT_PRIVATE = "NOT PRIVATE"
"""The entry of a record whose numbers have no noise, and why; and the words that say it."""
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Fact(NamedTuple):
    """A fact with its name."""

    name: str
    text: str


def title(record: dict[str, Any]) -> str:
    """Return a heading that names what was read, if that is known."""
    source = str(record.get("job", {}).get("input", ""))
    name = re.split(r"[/\\]", source)[-1]
    said = f"Released statistics: {name}" if name else "Released statistics"
    return f"{NOT_PRIVATE}. {said}" if NOT_PRIVATE in record else said


def summary(record: dict[str, Any], rows: int) -> str:
    """Return what was released, when, and for what, in one sentence."""
    date = str(record.get("date", ""))[:10]
    when = f" on {date}" if date else ""
    numbers = len(record["columns"]["numbers"])
    partitions = (
        f"{rows:,} partition{'s' * (rows != 1)}" if record["columns"]["keys"] else "all rows"
    )
    asked = f"{numbers} statistic{'s' * (numbers != 1)} of {partitions}"
    if NOT_PRIVATE in record:
        return f"{asked}, computed{when} without noise."
    return f"{asked}, released{when} with differential privacy: {amount(record['budget'])}."


def protects(record: dict[str, Any]) -> tuple[str, ...]:
    """Return what the numbers protect, and what they do not."""
    if NOT_PRIVATE in record:
        return (f"Nothing and nobody: {record[NOT_PRIVATE]}. Do not show this page to others.",)
    noise = (
        "Random noise was added to every number on this page, so that the page would look almost "
        f"the same without any one person in the data. {_person(record)}"
    )
    almost = (
        f"How much is almost: {_almost(record['budget'])} That holds for all numbers, intervals "
        "and names of partitions on this page together, whatever a reader knows beside it."
    )
    beyond = (
        "Not protected are the input itself, and what holds for many people alike: that is what "
        "the page is for. Each further release about the same people adds to what is told of them."
    )
    return noise, almost, _partitions(record), beyond


def _person(record: dict[str, Any]) -> str:
    owners = [f"“{name}”" for name in owners_of(record)]
    if len(owners) > 1:
        return f"A person is a value of any of these columns: {several_owners(owners)}."
    return f"A person is a value of the column {''.join(owners)}, with all rows that have it."


def _almost(budget: dict[str, str]) -> str:
    delta = Fraction(budget.get("delta", 0))
    but = f", but for a chance of at most {_short(delta)} (delta)" if delta else ""
    if "rho" in budget:
        rho = _short(budget["rho"])
        return f"as zero-concentrated differential privacy says with rho = {rho}{but}."
    epsilon = Fraction(budget["epsilon"])
    factor = f"{math.exp(epsilon):,.3g}" if epsilon < 50 else f"e to the {_short(epsilon)}"
    return (
        "whatever somebody can see here is at most "
        f"{factor} times as likely with a person in the data as without, and the other way round "
        f"(e to the power of epsilon = {_short(epsilon)}){but}."
    )


def _partitions(record: dict[str, Any]) -> str:
    if not record["columns"]["keys"]:
        return "All rows are one partition, which is always released."
    asked = record.get("parameters", {}).get("partitions") or {}
    if asked.get("type") == "PublicPartitions":
        return "Which partitions are listed was settled beforehand, and tells nothing of the data."
    return "Which partitions are listed was chosen privately: those with few people are missing."


def reading(metrics: Sequence[ShownMetric]) -> tuple[str, ...]:
    """Return how to read the numbers."""
    series = [each for metric in metrics for each in metric.series]
    said = []
    numbers = [number for each in series for number in each.numbers]
    if any(number.rank is None and not number.passes_over for number in numbers):
        said.append(
            "Behind a number stands the interval in which the true one, of all rows, lies in 95 of "
            f"100 releases{_interval_of(series)}. Each interval holds alone, not all of them "
            "together."
        )
    if any(UNKNOWN in str(number) for number in numbers):
        said.append(f"{UNKNOWN} in place of an end: nothing is known on that side.")
    if any(each.is_ranked for each in series):
        said.append(
            "(rank ±n): the number stands at most n people (rows, where these are counted) away "
            "from the place in the order of all that was asked for, in 95 of 100 releases."
        )
    if any(each.passes_over for each in series):
        said.append(f"Up to n people above or below: {shown_numbers.PASSED_OVER}.")
    if any(number.is_of_little_use for number in numbers):
        said.append(f"{MARK}: of little use: {shown_numbers.OF_LITTLE_USE}.")
    if any(number.is_not_shown for number in numbers):
        said.append(f"{MARK} beside an open interval: {shown_numbers.NOT_SHOWN}.")
    said.append(
        "Digits that would be noise are rounded away; the file of the release has all of them."
    )
    return tuple(said)


def _interval_of(series: Sequence[Series]) -> str:
    """Return an example among the numbers, one of use if there is any; "" for no interval."""
    known = [
        (number.is_of_little_use, plain(each.name), number)
        for each in series
        for number in each.numbers
        if None not in (number.value, number.low, number.high)
    ]
    if not known:
        return ""
    _, name, number = min(known, key=lambda each: each[0])
    value, low, high = number.cells
    between = f"the true number lies between {low} and {high}"
    return f", as {name} = {number}: {value} was released, and {between}"


def warnings(record: dict[str, Any], metrics: Sequence[ShownMetric], rows: int) -> tuple[str, ...]:
    """Return what a reader must beware of, each with what would help."""
    trial = [f"{NOT_PRIVATE}: {record[NOT_PRIVATE]}."] if NOT_PRIVATE in record else []
    return (*trial, *_of_numbers(metrics, rows), *_of_limits(record), *_of_budget(record["budget"]))


def _of_numbers(metrics: Sequence[ShownMetric], rows: int) -> Iterable[str]:
    if not rows:
        yield (
            "No partition was released. A larger epsilon or delta, coarser partitions, or naming "
            "the partitions beforehand would help."
        )
        return
    series = [each for metric in metrics for each in metric.series]
    empty = [each.name for each in series if all(n.value is None for n in each.numbers)]
    if empty:
        yield (
            f"{_listed(empty)}: no number could be released. There are too few people, or the "
            "column of the input holds no plain numbers (1234.5 is one, 1,234.5 and text are none)."
        )
    doubtful = sum(number.is_of_little_use for each in series for number in each.numbers)
    if doubtful:
        yield (
            f"{doubtful:,} of {rows * len(series):,} numbers are of little use, and are marked "
            f"with {MARK}. More people per partition, coarser partitions, fewer statistics or a "
            "larger budget would help."
        )


def _of_limits(record: dict[str, Any]) -> Iterable[str]:
    chosen = record.get("partitions_chosen")
    if chosen and (chosen.get("pairs_lost_estimate") or 0) > 0:
        reach = record["partitions_of_one_person"]
        yield (
            f"Some people have rows in more than {reach} partitions: about "
            f"{chosen['pairs_lost_estimate']:,.0f} pairs of a person and a partition are not "
            "counted. The intervals allow for that; coarser partitions would help."
        )


def _of_budget(budget: dict[str, str]) -> Iterable[str]:
    if Fraction(budget.get("epsilon", 0)) > _MUCH:
        yield (
            f"An epsilon of {_short(budget['epsilon'])} protects little: beyond {_MUCH} a single "
            "person can be seen. An epsilon of about 1 is usual."
        )
    if Fraction(budget.get("delta", 0)) > _MANY:
        yield (
            f"With a chance of {_short(budget['delta'])} (delta) anything may be told of somebody. "
            "A delta well below 1 / people, as 1e-6, is usual."
        )


def metric(shown_metric: ShownMetric, series: Series, by: Sequence[str] = ()) -> str:
    """Return what a number is: "Sum of “spent” by “day”"."""
    kind = _WORD.sub(" ", shown_metric.kind).capitalize()
    of = f" of “{plain(shown_metric.column)}”" if shown_metric.column else ""
    label = f", {series.label}" if series.label and not shown_metric.is_histogram else ""
    names = " and ".join(f"“{plain(name)}”" for name in by)
    return f"{kind}{of}{label}{names and ' by '}{names}"


def doubts(drawn: Sequence[ShownNumber], marked: bool) -> tuple[str, ...]:
    """Return what the drawing of some numbers means; `marked`: their marks are in it."""
    said = []
    if any(number.is_of_little_use for number in drawn):
        hollow = f"Hollow, and marked with {MARK}" if marked else "Hollow"
        said.append(f"{hollow}: of little use. An arrow: the interval goes on beyond the picture.")
    if marked and any(number.is_not_shown for number in drawn):
        said.append(f"Marked with {MARK} and not hollow: the error could not be shown.")
    if any(number.is_open for number in drawn):
        said.append("Dotted: nothing is known on that side.")
    return tuple(said)


def spent(record: dict[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Return the rows of what was spent: on what, for what, each time, how often, in all."""
    labels = {each["label"]: each["metric"] for each in record.get("releases", ())}
    return tuple(_spent(entry, labels) for entry in record.get("spent", ()))


def _spent(entry: dict[str, Any], labels: dict[str, str]) -> tuple[str, ...]:
    label, _, use = entry["on"].rpartition(": ")
    label, use = (label, use) if label in labels else (entry["on"], "")
    times = entry["times"]
    name = plain(labels.get(label, label))
    return (name, use or "all", amount(entry), f"{times:,}", amount(entry, times))


def limits(record: dict[str, Any]) -> tuple[Fact, ...]:
    """Return the limits on one person, the clips and the noise."""
    return (*_bounds(record), *(each for r in record.get("releases", ()) for each in _noise(r)))


def _bounds(record: dict[str, Any]) -> Iterable[Fact]:
    if "partitions_of_one_person" in record:
        chosen = ", chosen privately" if record.get("partitions_chosen") else ""
        most = f"at most {record['partitions_of_one_person']:,}{chosen}"
        yield Fact("Partitions in which one person counts", most)
    bounds = record.get("parameters", {}).get("bounds") or {}
    for name, words in (
        ("rows_per_partition", "Rows of one person in a partition"),
        ("rows", "Rows of one person in all"),
    ):
        if bounds.get(name) is not None:
            yield Fact(words, f"at most {bounds[name]:,}")
    if record.get("selection"):
        yield Fact("Selection of partitions", str(record["selection"]))


def _noise(release: dict[str, Any]) -> Iterable[Fact]:
    name, clip = plain(release["metric"]), release.get("clip") or {}
    said = [plain(release["mechanism"])]
    if clip.get("clips"):
        clips = " or ".join(_number(each) for each in clip["clips"])
        said.append(f"one person counts for at most {clips} in a partition (the clip)")
    if clip.get("noise_scales"):
        said.append(f"scale of the noise {' or '.join(map(_number, clip['noise_scales']))}")
    elif release["noise_scale"] != "-":
        said.append(f"scale of the noise {shortened(release['noise_scale'])}")
    if release.get("shift_T") and not clip:
        said.append(f"the rank may be off by {release['shift_T']:,} people")
    if release.get("note"):
        said.append(plain(release["note"]))
    yield Fact(name, "; ".join(said))


def asked(record: dict[str, Any]) -> tuple[Fact, ...]:
    """Return the parameters of the release that were not left as they are by default."""
    parameters = record.get("parameters", {})
    entries = [Fact("transform", str(record.get("transform", "")))]
    for name, value in parameters.items():
        if value not in (None, [], False, {}):
            entries.append(Fact(name, plain(_said(value))))
    return tuple(entries)


def _said(value: Any) -> str:
    """Return a parameter in words."""
    if isinstance(value, dict):
        inside = {name: part for name, part in value.items() if part not in (None, "", [], False)}
        kind = inside.pop("type", "")
        return f"{kind}({', '.join(f'{name}={_said(part)}' for name, part in inside.items())})"
    return ", ".join(map(_said, value)) if isinstance(value, list) else str(value)


def origin(record: dict[str, Any]) -> tuple[Fact, ...]:
    """Return the date, the program and the versions that the numbers come from."""
    entries = [Fact("date of the job", str(record.get("date", "")))]
    entries += [Fact(name, plain(_said(v))) for name, v in record.get("job", {}).items()]
    entries += [Fact(name, version) for name, version in record.get("versions", {}).items()]
    return (*entries, Fact("code", str(record.get("code", ""))))


def amount(cost: dict[str, Any], times: int = 1) -> str:
    """Return what is spent by something that is done so many times: "epsilon 0.5"."""
    name = "rho" if "rho" in cost else "epsilon"
    delta = Fraction(cost.get("delta", 0)) * times
    spent = f"{name} {_short(Fraction(cost[name]) * times)}"
    return f"{spent}, delta {_short(delta)}" if delta else spent


def _short(number: Fraction | str | int) -> str:
    return re.sub(r"e([-+])0*", r"e\1", f"{float(Fraction(number)):.4g}")


def _number(number: float) -> str:
    if _LARGE <= abs(number) < 1e15:
        return f"{number:,.0f}"
    return f"{number:,.4g}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(map(plain, names[:5])) + more
