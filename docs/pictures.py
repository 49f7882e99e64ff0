"""Take the pictures of docs/images anew: `python -m docs.pictures`, for which Chromium is needed.

They show the pages that two commands of the docs write: the last one of docs/start/table.md, and
`make demo`. Noise is new in every release, so the numbers on the pictures are too.
"""

import base64
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.browser import Browser, browser

IMAGES = Path(__file__).with_name("images")
VISITS = Path(__file__).with_name("start") / "visits.csv"
DEMO = Path("build/released.html")
MARGIN = 10
HEIGHT = 1180
JOB = (
    "--person visitor_id --partition day --count --sum spent --public_partitions 1,2,3,4,5,6,7 "
    "--epsilon 1"
)


class Picture(NamedTuple):
    """A part of a page.

    Attributes:
        name: the file, without its ending.
        width: of the window.
        charts: the names of the metrics whose charts are shown; none: the top of the page.
    """

    name: str
    width: int
    charts: Sequence[str] = ()


OF_VISITS = (Picture("visits_report", 860),)
OF_DEMO = (
    Picture("report_count", 680, ("count",)),
    Picture("report_histogram", 680, ("histogram_o_totalprice",)),
)


def take(shown: Browser, page: Path, pictures: Sequence[Picture], folder: Path) -> None:
    """Write the pictures of a page into a folder."""
    for picture in pictures:
        shown.open(page, picture.width)
        content = shown.picture(**part(shown, picture))
        (folder / f"{picture.name}.png").write_bytes(base64.b64decode(content))


def part(shown: Browser, picture: Picture) -> dict[str, float]:
    """Return which part of an open page a picture shows.

    Raises:
        KeyError: the page has no chart of a name.
    """
    if not picture.charts:
        return {"x": 0, "y": 0, "width": picture.width, "height": HEIGHT}
    boxes = shown.value(
        "Object.fromEntries([...document.querySelectorAll('figure')].map(figure => {"
        "const {top, bottom} = figure.getBoundingClientRect();"
        "return [figure.querySelector('h3').innerText, [top, bottom]]}))"
    )
    ends = [end for name in picture.charts for end in boxes[name]]
    top, bottom = min(ends) - MARGIN, max(ends) + MARGIN
    return {"x": 0, "y": top, "width": picture.width, "height": bottom - top}


def release_visits(folder: Path) -> Path:
    """Release the visits of the tutorial into a folder; return the page."""
    page = folder / "by_day.html"
    files = ["--input", str(VISITS), "--output", str(folder / "by_day.csv"), "--report", str(page)]
    run("aggregate", *files, *JOB.split())
    return page


def run(job: str, *words: str) -> None:
    """Run a job in a process of its own."""
    subprocess.run([sys.executable, "-m", f"pipelines.{job}", *words], check=True)


def main() -> None:
    """Release both, and take the pictures."""
    run("demo")
    with TemporaryDirectory() as folder, browser() as shown:
        take(shown, release_visits(Path(folder)), OF_VISITS, IMAGES)
        take(shown, DEMO, OF_DEMO, IMAGES)


if __name__ == "__main__":
    main()
