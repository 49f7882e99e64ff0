"""A ledger in a bucket: no charge is lost, whoever charges at once and whatever answer is lost.

S3 is moto's server; Google Cloud Storage is a stand-in that keeps generations.
"""

import itertools
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from moto.server import ThreadedMotoServer

import beam_dp as dp
from beam_dp.spending import ledger_bucket, ledger_file
from beam_dp.spending.ledger_bucket import GoogleObject, S3Object

NAMES = ["s3://shop/l.jsonl", "gs://shop/l.jsonl"]


class Google(BaseHTTPRequestHandler):
    """The requests of a client for one bucket, `shop`."""

    objects: ClassVar[dict[str, tuple[bytes, int]]] = {}
    generations = itertools.count(1)
    lock = threading.Lock()
    losing: ClassVar[list[bool]] = []
    """Whether the answer to the next write is lost."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def answer(self, status: int, body: bytes, generation: int = 0) -> None:
        self.send_response(status)
        if generation:
            self.send_header("X-Goog-Generation", str(generation))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """Answer with a bucket, or with an object or its metadata."""
        parts, given = urlsplit(self.path), parse_qs(urlsplit(self.path).query)
        bucket, _, name = parts.path.partition("/b/")[2].partition("/o/")
        if bucket != "shop" or (name and name not in self.objects):
            return self.answer(404, b"{}")
        content, generation = self.objects.get(name, (b"", 0))
        if given.get("generation", [str(generation)]) != [str(generation)]:
            return self.answer(404, b"{}")  # of an object without versions the old ones are gone
        if given.get("alt") == ["media"]:
            same = given["ifGenerationMatch"] == [str(generation)]
            return self.answer(200, content, generation) if same else self.answer(412, b"{}")
        return self.answer(200, json.dumps({"name": name, "generation": str(generation)}).encode())

    def do_POST(self) -> None:
        """Take an object whose generation is as it is said to be."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        given = parse_qs(urlsplit(self.path).query)
        boundary = re.search(rb'boundary="?([^"]+)', self.headers["Content-Type"].encode())
        assert boundary is not None
        said, content = (
            part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
            for part in body.split(b"--" + boundary[1])[1:3]
        )
        name = json.loads(said)["name"]
        with self.lock:
            if given["ifGenerationMatch"] != [str(self.objects.get(name, (b"", 0))[1])]:
                return self.answer(412, b"{}")
            self.objects[name] = content, next(self.generations)
        if self.losing:
            self.losing.pop()
            return self.answer(503, b"{}")
        return self.answer(200, said)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    s3, google = ThreadedMotoServer(port=0, verbose=False), ThreadingHTTPServer(("", 0), Google)
    s3.start()
    threading.Thread(target=google.serve_forever, daemon=True).start()
    yield {
        "AWS_ENDPOINT_URL_S3": "http://{}:{}".format(*s3.get_host_and_port()),
        "STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{google.server_port}",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    google.shutdown()
    s3.stop()


@pytest.fixture(autouse=True)
def stores(servers: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in servers.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket="shop")
    yield
    client.delete_object(Bucket="shop", Key="l.jsonl")
    client.delete_bucket(Bucket="shop")
    Google.objects.clear()


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_ledger(name):
    """As one in a file: started once, read by others, with a limit that holds."""
    assert not dp.Ledger(name).exists
    with pytest.raises(ValueError, match="limit must be given for a new ledger"):
        dp.Ledger(name).charge(dp.Budget(1), "one")
    dp.Ledger(name, dp.Budget(3)).charge(dp.Budget(1), "one")
    assert dp.Ledger(name).charge(dp.Budget(2), "two", person="who").left == (0, 0)
    with pytest.raises(ValueError, match="must be at most epsilon 3"):
        dp.Ledger(name).charge(dp.Budget(2.0**-50), "more")
    assert [each.label for each in dp.Ledger(name).balance.charges] == ["one", "two"]
    assert dp.Ledger(name).exists


@pytest.mark.parametrize("kind", [S3Object, GoogleObject])
def test_who_read_an_older_content_writes_nothing(kind):
    one, other = kind("shop", "l.jsonl"), kind("shop", "l.jsonl")
    assert one.read()[0] is other.read()[0] is None
    versions = one.read()[1], other.read()[1]
    assert one.write(b"first", versions[0]) and not other.write(b"other", versions[1])
    content, version = other.read()
    assert content == b"first" and other.write(b"second", version)
    assert not one.write(b"third", version) and one.read()[0] == b"second"


def test_what_is_written_while_it_is_read_is_read_again(monkeypatch):
    one, other = GoogleObject("shop", "l.jsonl"), GoogleObject("shop", "l.jsonl")
    assert one.write(b"first", 0)
    found, left = one._bucket.get_blob, [b"second", b"third"]

    def behind_others(name: str) -> Any:
        blob = found(name)
        if left:
            assert other.write(left.pop(0), other.read()[1])
        return blob

    monkeypatch.setattr(one._bucket, "get_blob", behind_others)
    content, version = one.read()
    assert content == b"third" and other.read() == (content, version)


def test_a_charge_whose_answer_is_lost_counts_once():
    """Of a new object and of an old one: the client asks again, and is refused what it wrote."""
    for number in (1, 2):
        Google.losing.append(True)
        made = dp.Ledger("gs://shop/l.jsonl", dp.Budget(3)).charge(dp.Budget(1), f"run {number}")
        assert made.amount == number and not Google.losing


def test_a_job_behind_another_waits_and_is_charged(monkeypatch):
    """The other one writes between the read and the write of this one."""
    dp.Ledger("gs://shop/l.jsonl", dp.Budget(3)).charge(dp.Budget(1), "first")
    write, others = GoogleObject.write, [1]

    def behind_another(stored: GoogleObject, content: bytes, version: int) -> bool:
        if others:
            others.pop()
            dp.Ledger("gs://shop/l.jsonl").charge(dp.Budget(1), "other")
        return write(stored, content, version)

    monkeypatch.setattr(GoogleObject, "write", behind_another)
    assert dp.Ledger("gs://shop/l.jsonl").charge(dp.Budget(1), "mine").amount == 3


class Held:
    """An object in memory, whose conditional writes are atomic; some answers are lost."""

    content: tuple[bytes | None, int] = None, 0
    lock, lost = threading.Lock(), False

    def __init__(self, *_: str) -> None:
        """Take any name."""

    def read(self) -> tuple[bytes | None, int]:
        """Return the content and its version."""
        return Held.content

    def write(self, content: bytes, version: int) -> bool:
        """Write where nobody else has; where answers are lost, the client asks again."""
        with self.lock:
            if Held.content[1] != version:
                return False
            Held.content = content, version + 1
        return not (self.lost and version % 3)


@pytest.mark.parametrize("lost", [False, True])
def test_every_charge_counts_once(lost, monkeypatch):
    """60 charges of a 25th of the limit, six at a time: 25 of them are in the ledger."""
    monkeypatch.setattr(Held, "lost", lost)
    monkeypatch.setattr(Held, "content", (None, 0))
    monkeypatch.setattr(ledger_bucket, "PAUSE", 0.0)
    monkeypatch.setitem(ledger_bucket._KINDS, "s3", Held)

    def charge(number: int) -> bool:
        try:
            dp.Ledger(NAMES[0], dp.Budget(1)).charge(dp.Budget(Fraction(1, 25)), f"run {number}")
        except ValueError as error:
            assert "must be at most epsilon 1" in str(error)
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(charge, range(60))) == 25
    charges = dp.Ledger(NAMES[0]).balance.charges
    assert len({each.label for each in charges}) == len(charges) == 25


def test_equal_jobs_of_one_second_are_two_charges(monkeypatch):
    """The other job writes the same label in the same second, between read and write of this one."""
    monkeypatch.setattr(Held, "content", (None, 0))
    monkeypatch.setattr(ledger_bucket, "PAUSE", 0.0)
    monkeypatch.setitem(ledger_bucket._KINDS, "s3", Held)
    monkeypatch.setattr(ledger_file, "today", lambda: "2026-11-22T06:00:00+00:00")
    write, others = Held.write, [1]

    def charge() -> dp.Ledger:
        ledger = dp.Ledger(NAMES[0], dp.Budget(3))
        ledger.charge(dp.Budget(1), "visits per day")
        return ledger

    def behind_another(stored: Held, content: bytes, version: int) -> bool:
        if others:
            others.pop()
            charge()
        return write(stored, content, version)

    monkeypatch.setattr(Held, "write", behind_another)
    assert charge().balance.amount == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("s3://nobody/l.jsonl", "must be an object that can be read and written: .*NoSuchBucket"),
        ("gs://nobody/l.jsonl", "must be an object that can be read and written: 404"),
        ("s3://shop", "path must be s3://bucket/name, not 's3://shop'"),
        ("azfs://shop/l.jsonl", "path must be in a folder of this machine"),
    ],
)
def test_what_cannot_be_charged_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        dp.Ledger(name, dp.Budget(1)).charge(dp.Budget(1), "one")


def test_a_store_that_ignores_conditions_is_refused(monkeypatch):
    write = S3Object.write

    def always(stored: S3Object, content: bytes, _: str) -> bool:
        return write(stored, content, stored.read()[1])

    monkeypatch.setattr(S3Object, "write", always)
    with pytest.raises(ValueError, match="be in a store that refuses a write whose condition"):
        dp.Ledger(NAMES[0], dp.Budget(3)).charge(dp.Budget(1), "one")


def test_a_store_that_others_change_for_too_long_charges_nothing(monkeypatch):
    monkeypatch.setattr(ledger_bucket, "PATIENCE", 0.05)
    monkeypatch.setattr(S3Object, "write", lambda *_: False)
    with pytest.raises(ValueError, match="be changed by fewer jobs at once"):
        dp.Ledger(NAMES[0], dp.Budget(3)).charge(dp.Budget(1), "one")
    assert not dp.Ledger(NAMES[0]).exists
