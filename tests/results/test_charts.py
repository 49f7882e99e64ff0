"""Charts: every number is drawn, nothing of a key is code, and doubts can be seen without color."""

import itertools
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from beam_dp.results import charts
from beam_dp.results.charts import ChartPoint
from beam_dp.results.shown_numbers import shown
from tests.results.releases import HOSTILE, HOSTILE_KEYS

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    """Return the text of a picture, which must be well formed."""
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def points(values: list[Any], labels: list[str] | None = None) -> list[ChartPoint]:
    names = labels or [f"key {at}" for at in range(len(values))]
    numbers = [shown(v, v and v - 1, v and v + 2) for v in values]
    return [ChartPoint(name, number) for name, number in zip(names, numbers, strict=True)]


def test_bars_are_sorted_and_named() -> None:
    said = texts(charts.bars(points([5.0, 50.0, 20.0])))
    names = [text for text in said if text.startswith("key")]
    assert names == ["key 0", "key 2", "key 1"]  # from below
    assert [text for text in said if text in ("5.00", "20.00", "50.00")] == [
        "5.00",
        "20.00",
        "50.00",
    ]


def test_the_largest_of_thousands_are_drawn() -> None:
    svg = charts.bars(points([float(10 + at) for at in range(3_000)]))
    drawn = {text for text in texts(svg) if text.startswith("key")}
    assert drawn == {f"key {at}" for at in range(2_970, 3_000)} and len(svg) < 150_000


@pytest.mark.parametrize("draw", ["bars", "line", "histogram"])
def test_no_key_is_code(draw: str) -> None:
    some = points([float(at) for at in range(6)], HOSTILE_KEYS)
    svg = {
        "bars": lambda: charts.bars(some),
        "line": lambda: charts.line(some, list(range(6))),
        "histogram": lambda: charts.histogram([(HOSTILE, some), ("東京", some)]),
    }[draw]()
    assert "<script" not in svg and "\x1b" not in svg and "\u202e" not in svg
    assert any(text.startswith(HOSTILE[:8]) for text in texts(svg))
    assert draw == "line" or any(text.startswith("東京") for text in texts(svg))


def test_a_number_of_little_use_is_hollow() -> None:
    good, bad = points([50.0]), [ChartPoint("bad", shown(5.0, 0.0, 40.0))]
    for draw in (charts.bars, lambda some: charts.line([*some, *some], [1, 2])):
        assert (draw(good) == draw(bad)) is False
    assert "stroke-dasharray" in charts.bars(bad)
    assert "stroke-dasharray" not in charts.bars(good)
    assert "5.0*" in " ".join(texts(charts.bars(bad)))


def test_a_number_whose_error_is_not_shown_is_marked_and_not_hollow() -> None:
    dashes = [
        charts.bars([ChartPoint("open", shown(50.0, low, float("inf")))]).count("stroke-dasharray")
        for low in (40.0, 0.0)
    ]
    assert dashes == [1, 2]  # the interval alone, and the bar too
    [point] = [ChartPoint("", shown(50.0, 40.0, float("inf")))]
    assert "50.0*" in texts(charts.bars([point]))


def test_an_axis_begins_at_0_where_the_numbers_are_not_far_from_it() -> None:
    near, far = points([10.0, 60.0]), points([950.0, 960.0, 1000.0])
    assert charts.begins_at_zero(near) and not charts.begins_at_zero(far)
    assert charts.begins_at_zero(points([-5.0, 900.0])) and charts.begins_at_zero(far[:1])
    assert "0" in texts(charts.bars(near)) and "0" not in texts(charts.bars(far))
    assert "0" not in texts(charts.line(far, [1, 2, 3])) and "0" in texts(charts.line(near, [1, 2]))


def test_numbers_that_are_missing_or_infinite_do_not_stop_a_chart() -> None:
    some = [
        ChartPoint("a", shown(None, None, None)), ChartPoint("b", shown(3.0, None, 4.0)),
        ChartPoint("c", shown(1e300, -1e300, 1e308)), ChartPoint("d", shown(2.0, rank=5.0)),
    ]  # fmt: skip
    for svg in (charts.bars(some), charts.line(some, [1, 2, 3, 4]), charts.histogram([("", some)])):
        assert not re.search(r"\bnan\b|\binf\b", svg)
        ElementTree.fromstring(svg)
    ElementTree.fromstring(charts.bars(some[:1]))
    assert texts(charts.line(points([None, 5.0, None]), [1, 2, 3]))[:3] == [
        "key 0",
        "key 1",
        "key 2",
    ]


@pytest.mark.parametrize("panels", [1, 2, 12])
def test_bins_have_their_names(panels: int) -> None:
    bins = points([3.0, 9.0, 4.0], ["few", "100 to below 300", "400 or more"])
    said = texts(charts.histogram([(f"panel {at}", bins) for at in range(panels)]))
    assert said.count("few") == panels
    assert (f"panel {panels - 1}" in said) == (panels > 1)


def test_bins_that_meet_have_their_edges() -> None:
    bins = ["below 18", "18 to below 100000", "100000 to below 3000000", "3000000 or more"]
    [*said, _] = texts(charts.histogram([("", points([3.0, 9.0, 4.0, 2.0], bins))]))
    assert said[:5] == ["less", "18", "100k", "3M", "more"]
    closed = texts(
        charts.histogram([("", points([3.0, 4.0], ["-1 to below 0.5", "0.5 to below 2"]))])
    )
    assert closed[:3] == ["-1", "0.5", "2"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("many", [3, 8, 400, 40])
def test_edges_that_have_no_place_are_left_out_at_equal_steps(many: int) -> None:
    bins = [f"{at} to below {at + 1}" for at in range(many)]
    numbers = points([5.0] * many, bins)
    for panels, most in ((1, 25), (4, 12)):
        said = texts(charts.histogram([(f"panel {at}", numbers) for at in range(panels)]))
        shown = [int(text) for text in said[: said.index("0", 1)]]
        steps = {b - a for a, b in itertools.pairwise(shown)}
        assert shown[0] == 0 and len(steps) == 1 and 3 <= len(shown) <= most


def test_shades_have_names_for_a_page_in_the_dark() -> None:
    svg = charts.bars(points([5.0, 50.0])) + charts.line(points([5.0, 6.0]), [1, 2])
    page = (Path(charts.__file__).parent / "report.html").read_text(encoding="utf-8")
    assert set(re.findall(r"#[0-9a-f]{6}\b", svg)) == set(
        re.findall(r"var\(--\w+, (#\w{6})\)", svg)
    )
    for name, shade in set(re.findall(r"var\(--(\w+), (#\w{6})\)", svg)):
        assert page.count(f"--{name}: ") == 2 and f"--{name}: {shade};" in page


def test_the_same_numbers_make_the_same_picture() -> None:
    assert charts.bars(points([1.0, 2.0])) == charts.bars(points([1.0, 2.0]))
