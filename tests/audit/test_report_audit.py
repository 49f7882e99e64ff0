"""Pages of reports in a browser: no error, no request, nothing cut off, wide and narrow.

It needs Chromium; `.ci/run` installs it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

import beam_dp as dp
from tests.browser import Browser, browser
from tests.results.releases import HOSTILE_KEYS, made

pytestmark = pytest.mark.audit
WIDTHS = (1280, 390)
PAGES = {
    "one": [()],
    "four": ["a", "b", "c", "d"],
    "days": [str(day) for day in range(1, 8)],
    "thousands": [f"shop number {at}" for at in range(3_000)],
    "hostile": HOSTILE_KEYS,
    "none": [],
}

CUT_OFF = """
[...document.querySelectorAll('body *')].filter(each => {
  const box = each.getBoundingClientRect();
  if (!box.width || each.closest('.wide table') || each.closest('details')) return false;
  return box.left < -1 || box.right > document.documentElement.clientWidth + 1;
}).map(each => each.tagName + ' ' + each.textContent.slice(0, 60))
"""
"""What stands beyond the window, but for tables, which are moved to and fro."""
CHART_TEXTS = "figure span, figure th, figure h4, figure td.number"
OVER_THE_EDGE = f"""
[...document.querySelectorAll('figure')].flatMap(figure => {{
  const edge = figure.getBoundingClientRect();
  return [...figure.querySelectorAll('{CHART_TEXTS}')].filter(text => {{
    const box = text.getBoundingClientRect();
    return box.left < edge.left - 1 || box.right > edge.right + 1
      || box.top < edge.top - 1 || box.bottom > edge.bottom + 1;
  }}).map(text => text.textContent);
}})
"""
"""Text of charts that reaches beyond its picture."""
OVERLAPS = f"""
[...document.querySelectorAll('figure')].flatMap(figure => {{
  const boxes = [...figure.querySelectorAll('{CHART_TEXTS}, rect, circle')]
    .map(t => [t.textContent || t.tagName, t.getBoundingClientRect()]);
  return boxes.flatMap(([name, a], at) => boxes.slice(at + 1)
    .filter(([_, b]) => a.left < b.right - 1 && b.left < a.right - 1
      && a.top < b.bottom - 3 && b.top < a.bottom - 3)
    .map(([other]) => name + ' / ' + other));
}})
"""
"""Texts, bars and points of a chart that stand on each other."""
CELLS = "[...document.querySelector('table.sortable').tBodies[0].rows].map(r => r.cells[%d].textContent)"
CLICK = "document.querySelectorAll('table.sortable th button')[%d].click()"


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    with browser() as made_tab:
        yield made_tab


@pytest.fixture
def page(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "page.html"
    dp.Released(*made(PAGES[request.param])).report(path)
    return path


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES, indirect=True)
def test_a_page_is_whole_and_silent(tab: Browser, page: Path, width: int) -> None:
    tab.said.clear()
    tab.open(page, width)
    assert tab.value("document.title").startswith("Released statistics")
    assert tab.value(CUT_OFF) == []
    assert tab.value(OVER_THE_EDGE) == [] and tab.value(OVERLAPS) == []
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.said == []


@pytest.mark.parametrize("page", ["thousands"], indirect=True)
def test_a_click_sorts_the_table(tab: Browser, page: Path) -> None:
    tab.said.clear()
    tab.open(page, WIDTHS[0])
    tab.value(CLICK % 2)  # the medians, of which the last is missing
    falling = tab.value(CELLS % 2)
    assert falling[0].startswith("112,700") and falling[-1] == "-*"
    tab.value(CLICK % 2)
    rising = tab.value(CELLS % 2)
    assert rising[0].startswith("1,000 ") and rising[-1] == "-*" and len(rising) == 3_000
    tab.value(CLICK % 0)
    assert tab.value(CELLS % 0)[0] == "shop number 999"
    assert tab.said == []


def test_the_look_notices(tab: Browser, tmp_path: Path) -> None:
    """The broken twin: a page with an error, a request, and text over every edge."""
    path = tmp_path / "bad.html"
    style = "position: absolute; left: 190px"
    text = f"<span style='{style}'>beyond</span><span style='{style}'>it</span>"
    path.write_text(
        f"<body><figure style='width: 200px'>{text}</figure><p style='width:3000px'>wide</p>"
        "<img src='http://127.0.0.1:9/x.png'><script>throw new Error('no')</script>"
    )
    tab.said.clear()
    tab.open(path, WIDTHS[1])
    assert tab.value(CUT_OFF) and tab.value(OVER_THE_EDGE) and tab.value(OVERLAPS)
    assert any("asked for http" in said for said in tab.said)
    assert any("no" in said for said in tab.said)


SHADES = """
(() => {
  const light = css => {
    const [r, g, b] = css.match(/[\\d.]+/g).slice(0, 3).map(c => c / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const over = ink => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  const texts = [...document.querySelectorAll('p, td, th, dd, h2')].map(e => getComputedStyle(e).color);
  const drawn = [...document.querySelectorAll('figure span, figure th')].map(e => getComputedStyle(e).color);
  return [paper, Math.min(...[...texts, ...drawn].map(css => over(light(css)))), drawn.length];
})()
"""
"""How light the page is, the least contrast of its texts (WCAG), and how many are in charts."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["days"], indirect=True)
def test_a_page_can_be_read_in_the_light_and_in_the_dark(
    tab: Browser, page: Path, scheme: str
) -> None:
    """4.5 is the contrast that WCAG asks for at level AA."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    tab.call("Emulation.setEmulatedMedia", features=features)
    paper, contrast, drawn = tab.open(page, WIDTHS[0]).value(SHADES)
    tab.call("Emulation.setEmulatedMedia", features=[])
    assert (paper > 0.9) == (scheme == "light") and (paper < 0.05) == (scheme == "dark")
    assert contrast >= 4.5 and drawn > 20
