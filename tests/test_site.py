"""The site builds, every link of it leads somewhere, and nothing of it is fetched when it is read."""

import html.parser
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import PAGES, ROOT

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
KNOWN = ("canonical", "prev", "next", "alternate")


class Loads(html.parser.HTMLParser):
    """Collects what a page loads from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        target = given.get(LOADED.get(tag, "")) or ""
        remote = target.startswith(("http:", "https:", "//"))
        if remote and given.get("rel") not in KNOWN:
            self.found.append(target)


def loads(text: str) -> list[str]:
    parser = Loads()
    parser.feed(text)
    return parser.found


def build(made: Path) -> None:
    """Build the site as `make docs` does; a link or an anchor that leads nowhere fails."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", made]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.audit
def test_the_site_is_whole_and_reads_without_a_network(tmp_path):
    build(tmp_path)
    built = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html")}
    docs = (page.removeprefix("docs/") for page in PAGES if page.startswith("docs/"))
    assert {page.removesuffix(".md") + ".html" for page in docs} | {"404.html"} == built
    assert (tmp_path / "start/visits.csv").exists() and not list(tmp_path.rglob("*.py*"))
    assert not list(tmp_path.rglob("__pycache__"))
    for page in tmp_path.rglob("*.html"):
        assert loads(page.read_text(encoding="utf-8")) == [], page.name
    for style in tmp_path.rglob("*.css"):
        assert "url(http" not in style.read_text(encoding="utf-8")
    check_search(tmp_path)
    api = (tmp_path / "api.html").read_text(encoding="utf-8")
    assert "Release statistics about people per partition" in api
    assert api.count('class="doc doc-object') > 50


def check_search(site: Path) -> None:
    """Assert that the search has what it needs to run from local files."""
    assert (site / "search/search_index.js").stat().st_size > 100_000
    assert "IFrameWorker" in (site / "assets/iframe-worker.js").read_text(encoding="utf-8")
    assert "assets/iframe-worker.js" in (site / "index.html").read_text(encoding="utf-8")


def test_what_is_fetched_would_be_noticed():
    assert loads('<script src="https://a/b.js"></script><link rel="stylesheet" href="//c/d">') == [
        "https://a/b.js",
        "//c/d",
    ]
    assert loads('<a href="https://a"></a><link rel="canonical" href="https://a">') == []
