"""The pictures of the docs are taken by a command, from pages that the library writes."""

import re
from pathlib import Path

import pytest

from docs import pictures
from tests.browser import browser

pytestmark = pytest.mark.audit
PNG = b"\x89PNG\r\n\x1a\n"


def test_the_pictures_of_the_visits_are_taken_from_a_release(tmp_path: Path) -> None:
    with browser() as shown:
        page = pictures.release_visits(tmp_path)
        pictures.take(shown, page, pictures.OF_VISITS, tmp_path)
        with pytest.raises(KeyError, match="no_such_metric"):
            pictures.part(shown, pictures.Picture("", 680, ("no_such_metric",)))
    for picture in pictures.OF_VISITS:
        content = (tmp_path / f"{picture.name}.png").read_bytes()
        width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
        assert content.startswith(PNG) and width == picture.width and height > 400


def test_the_command_takes_every_picture_that_the_pages_show() -> None:
    taken = {f"{picture.name}.png" for picture in (*pictures.OF_VISITS, *pictures.OF_DEMO)}
    pages = Path(pictures.__file__).parent.rglob("*.md")
    shown = {name for page in pages for name in re.findall(r"images/(\w+\.png)", page.read_text())}
    assert taken == shown == {path.name for path in pictures.IMAGES.iterdir()}
