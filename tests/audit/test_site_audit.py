"""Pages of the site in a browser: no error, no request, nothing beside the window, light and dark.

It needs Chromium; `.ci/run` installs it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import Browser, browser
from tests.test_site import build

pytestmark = pytest.mark.audit
BESIDE = """
[...document.querySelectorAll('.md-content *')].filter(each => {
  const box = each.getBoundingClientRect();
  if (!box.width || each.closest('pre, .highlight, .md-typeset__scrollwrap')) return false;
  return box.left < -1 || box.right > document.documentElement.clientWidth + 1;
}).map(each => each.tagName + ' ' + each.textContent.slice(0, 60))
"""
"""What stands beside the window, but for code and tables, which are moved to and fro."""
BROKEN = """
[...document.querySelectorAll('table:not(:has(th:nth-child(3))) td:first-child code')].filter(
  each => /^--\\w+$/.test(each.textContent) && each.getClientRects().length > 1
).map(each => each.textContent)
"""
"""Names of options that are broken into lines, in tables of two columns."""
LIGHT = """
(() => {
  const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
  return (r + g + b) / 765;
})()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    build(made)
    return made


@pytest.fixture
def tab() -> Iterator[Browser]:
    with browser() as made_tab:
        yield made_tab


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_page_is_whole_and_silent(tab: Browser, site: Path, width: int, scheme: str) -> None:
    """What stands where does not depend on colours, nor colours on the width."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    tab.call("Emulation.setEmulatedMedia", features=features)
    pages = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]
    assert len(pages) > 25  # that of a server which misses a page has addresses of its root
    for page in pages:
        tab.said.clear()
        tab.open(page, width)
        assert tab.value("document.documentElement.scrollWidth") <= width, page.name
        assert (tab.value(BESIDE), tab.value(BROKEN), tab.said) == ([], [], []), page.name
        assert (tab.value(LIGHT) > 0.9) == (scheme == "light"), page.name
