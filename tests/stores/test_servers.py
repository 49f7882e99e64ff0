"""Jobs, ledgers and faults on real servers: `make test-stores`."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from apache_beam.io.aws.clients.s3.messages import S3ClientError
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from google.api_core.exceptions import RetryError

import beam_dp as dp
from beam_dp.transforms.io import whole_files
from pipelines import aggregate
from tests.stores.servers import Google, Server

ROWS = b"who,day\n" + b"".join(b"p%d,%d\n" % (n, 1 + n % 3) for n in range(300))


@pytest.fixture
def shop(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The bucket, with rows and keys, as Beam names it."""
    server.put("in/a.csv", ROWS)
    server.put("keys.csv", b"day\n1\n2\n3\n")
    monkeypatch.setattr(FileSystems, "_pipeline_options", PipelineOptions(server.options))
    return f"{server.scheme}://shop"


def test_everything_of_a_job_is_in_the_store(server: Server, shop: str) -> None:
    asked = ["--person", "who", "--partition", "day", "--count", "--epsilon", "1"]
    files = ["--input", f"{shop}/in/*.csv", "--public_partitions", f"@{shop}/keys.csv"]
    files += ["--ledger", f"{shop}/l.jsonl", "--total_epsilon", "3"]
    words = [*asked, *files, "--quiet", "--runner", "FnApiRunner", *server.options]
    for name in ("out.csv", "out.parquet"):
        output = ["--output", f"{shop}/{name}", "--report", f"{shop}/{name}.html"]
        assert aggregate.main([*words, *output]) == 0
        assert {name, f"{name}.json", f"{name}.html", "l.jsonl"} <= server.names()
    balance = dp.Ledger(f"{shop}/l.jsonl").balance
    assert balance.amount == 2
    with pytest.raises(SystemExit):
        aggregate.main([*words, "--output", f"{shop}/out.csv"])  # it is there
    assert len(dp.Ledger(f"{shop}/l.jsonl").balance.charges) == 2


def test_no_charge_of_six_at_once_is_lost(shop: str) -> None:
    def charge(number: int) -> bool:
        ledger = dp.Ledger(f"{shop}/l.jsonl", dp.Budget(1))
        try:
            ledger.charge(dp.Budget(Fraction(1, 10)), f"run {number}")
        except ValueError as refused:
            assert "must be at most" in str(refused)
            return False
        return True

    with ThreadPoolExecutor(6) as threads:
        paid = list(threads.map(charge, range(18)))
    labels = {each.label for each in dp.Ledger(f"{shop}/l.jsonl").balance.charges}
    assert sum(paid) == len(labels) == 10


def test_a_server_that_dies_while_it_is_written_to_publishes_no_part(
    server: Server, shop: str
) -> None:
    """No part of an object appears; a client that asks a dead server ends in bounded time."""
    whole = b"x" * (256 << 20)
    server.put("old.csv", b"old")
    before = server.names()
    if isinstance(server, Google):
        server.kill()  # it keeps what comes in memory until all is there
    else:
        threading.Thread(target=kill_while_written, args=[server], daemon=True).start()
    start = time.monotonic()
    given_up = S3ClientError, RetryError
    with pytest.raises(given_up), whole_files.written(f"{shop}/old.csv") as file:
        file.write(whole)
    assert time.monotonic() < start + 300
    server.start_again()
    assert server.names() == before
    with FileSystems.open(f"{shop}/old.csv") as file:
        assert file.read() in (b"old", whole)  # it may die before it answers that it is done


def kill_while_written(server: Server) -> None:
    """Kill a server that has stored some megabytes of an object."""
    before = size(server.data)
    while size(server.data) < before + (8 << 20):
        time.sleep(0.01)
    server.kill()


def size(folder: Path) -> int:
    """Return how many bytes the files of a folder have."""
    found = 0
    for path in folder.rglob("*"):
        try:
            found += path.stat().st_size
        except OSError:  # it was moved meanwhile
            continue
    return found
