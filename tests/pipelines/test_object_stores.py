"""Files in an object store: a server on loopback that speaks S3, with faults of its own."""

import functools
import gc
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import boto3
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.io.aws.clients.s3 import boto3_client, messages
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from botocore.loaders import JSONFileLoader
from moto.server import ThreadedMotoServer

import beam_dp as dp
from beam_dp.transforms.io import open_files, whole_files
from pipelines import aggregate, check
from tests.row_files import write

KEYS = ["--s3_access_key_id=a", "--s3_secret_access_key=b", "--s3_region_name=us-east-1"]
ASKED = ["--person", "visitor", "--partition", "day", "--count", "--epsilon", "1", "--quiet"]
RUN = ["--runner", "FnApiRunner"]
Store = Any


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server; what its some hundred clients read of files of boto3 is parsed once."""
    made, parsed = ThreadedMotoServer(port=0, verbose=False), functools.cache(_parsed)
    made.start()
    with mock.patch.object(JSONFileLoader, "load_file", lambda _, path: parsed(path)):
        yield "http://{}:{}".format(*made.get_host_and_port())
    made.stop()


def _parsed(path: str, load: Callable[..., Any] = JSONFileLoader.load_file) -> Any:
    return load(JSONFileLoader(), path)


@pytest.fixture
def store(server: str, visits: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A bucket with visits, a mapping and keys; Beam's client asks no server more than once."""
    given = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=server, **given)
    client.create_bucket(Bucket="shop")
    client.upload_file(visits, "shop", "in/visits.csv")
    client.put_object(Bucket="shop", Key="keys.csv", Body=b"day\n1\n2\n3\n")
    text = b'{"person": "visitor", "metrics": ["count"], "budget": {"epsilon": 1}}'
    client.put_object(Bucket="shop", Key="release.yaml", Body=text)
    FileSystems.set_options(PipelineOptions([f"--s3_endpoint_url={server}", *KEYS]))
    yield client
    for item in client.list_objects_v2(Bucket="shop").get("Contents", []):
        client.delete_object(Bucket="shop", Key=item["Key"])
    client.delete_bucket(Bucket="shop")
    FileSystems.set_options(None)


def names(store: Store) -> set[str]:
    return {item["Key"] for item in store.list_objects_v2(Bucket="shop").get("Contents", [])}


MADE = {"in/visits.csv", "keys.csv", "release.yaml"}


def called(server: str, *words: str, output: str = "s3://shop/out.csv") -> int:
    files = ["--input", "s3://shop/in/*.csv", "--output", output]
    return aggregate.main([*files, *words, *RUN, f"--s3_endpoint_url={server}", *KEYS])


def test_everything_may_be_in_a_store(store, server, tmp_path):
    """Input, keys, output, record and page; and the mapping."""
    asked = ["--config", "s3://shop/release.yaml", "--partition", "day", "--quiet"]
    keys = ["--public_partitions", "@s3://shop/keys.csv", "--report", "s3://shop/page.html"]
    assert called(server, *asked, *keys) == 0
    assert names(store) == {*MADE, "out.csv", "out.csv.json", "page.html"}
    text = store.get_object(Bucket="shop", Key="out.csv")["Body"].read().decode()
    assert text.startswith("day,count,count_low,count_high\r\n1,") and text.count("\r\n") == 4
    words = ["s3://shop/in/visits.csv", "--person", "visitor"]
    FileSystems.set_options(None)
    with pytest.MonkeyPatch.context() as patched:
        for name, value in zip(
            ("ENDPOINT_URL", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "DEFAULT_REGION"),
            (server, "a", "b", "us-east-1"),
            strict=True,
        ):
            patched.setenv(f"AWS_{name}", value)
        assert check.main(words) == 0


REFUSED: dict[str, tuple[list[str], str, str]] = {
    "no bucket": (["--input", "s3://shopp/in/visits.csv"], "s3://shop/o.csv", "'s3://shopp/in/visits.csv' matches none"),
    "no match": (["--input", "s3://shop/in/*.parquet"], "s3://shop/o.csv", "matches none"),
    "no bucket for output": ([], "s3://shopp/o.csv", "path 's3://shopp/o.csv' must be one that can be reached"),
    "no mapping": (["--config", "s3://shop/none.yaml"], "s3://shop/o.csv", "path 's3://shop/none.yaml' must be"),
    "no keys": (["--public_partitions", "@s3://shop/none.csv"], "s3://shop/o.csv", "match a file"),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("words", "output", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_there_is_told_before_the_charge(
    words, output, said, store, server, tmp_path, refused
):
    ledger = tmp_path / "ledger.jsonl"
    given = {"--input": "s3://shop/in/*.csv", "--public_partitions": "1,2,3"}
    given |= dict(zip(words[::2], words[1::2], strict=True))
    flags = [word for pair in given.items() for word in pair]
    charged = ["--ledger", str(ledger), "--total_epsilon", "3"]
    beams = [*RUN, f"--s3_endpoint_url={server}", *KEYS]
    asked = [] if "--config" in words else ASKED
    line = refused(aggregate, *flags, "--output", output, *asked, *charged, *beams)
    assert said in line and not ledger.exists()
    assert names(store) == MADE


def fail(*_: Any, **__: Any) -> None:
    raise messages.S3ClientError("An error occurred (AccessDenied): no", 403)


def test_an_output_that_must_not_be_written_is_told_before_the_charge(
    store, server, tmp_path, refused, monkeypatch
):
    monkeypatch.setattr(boto3_client.Client, "create_multipart_upload", fail)
    ledger = tmp_path / "l.jsonl"
    words = ["--input", "s3://shop/in/*.csv", "--output", "s3://shop/o.csv", *ASKED]
    words += ["--delta", "1e-6"]
    charged = ["--ledger", str(ledger), "--total_epsilon", "3", *RUN, f"--s3_endpoint_url={server}"]
    assert "read or written: An error occurred (AccessDenied)" in refused(
        aggregate, *words, *charged, *KEYS
    )
    assert not ledger.exists() and names(store) == MADE


@pytest.mark.parametrize(
    "at", ["create_multipart_upload", "upload_part", "complete_multipart_upload"]
)
def test_an_error_publishes_nothing(at, store, monkeypatch):
    """Neither of the store, nor of who makes the bytes; an older object stays as it is."""
    store.put_object(Bucket="shop", Key="old.csv", Body=b"old")
    with pytest.raises(ZeroDivisionError), whole_files.written("s3://shop/old.csv") as file:
        file.write(b"half")
        raise ZeroDivisionError
    with monkeypatch.context() as patched:
        patched.setattr(boto3_client.Client, at, fail)
        for name in ("old.csv", "new.csv"):
            with (
                pytest.raises(messages.S3ClientError),
                whole_files.written(f"s3://shop/{name}") as file,
            ):
                file.write(b"x" * (6 << 20))
                file.write(b"y")
        # What a client still holds is sent when it is freed. In a thread of the server, which lives
        # in this process, that would wait for the server for ever.
        gc.collect()
    assert names(store) == {*MADE, "old.csv"}
    assert store.get_object(Bucket="shop", Key="old.csv")["Body"].read() == b"old"


@pytest.mark.audit
def test_deletes_may_be_forbidden(store, server, monkeypatch):
    for name in ("delete", "delete_batch"):
        monkeypatch.setattr(boto3_client.Client, name, fail)
    assert called(server, *ASKED, "--public_partitions", "1,2,3") == 0
    left = names(store) - {*MADE, "out.csv", "out.csv.json"}
    assert len(left) == 1 and left.pop().endswith(
        ".trial.partial"
    )  # of one byte, before the charge


def test_a_trial_that_cannot_be_deleted_stays(store, monkeypatch):
    """Google's client raises errors of its own, which Beam passes on."""
    monkeypatch.setattr(FileSystems, "delete", lambda _: 1 / 0)
    whole_files.try_out("s3://shop/out.csv")
    [left] = names(store) - MADE
    assert left.endswith(".trial.partial")


def test_of_27_columns_three_are_fetched(store, tmp_path, monkeypatch):
    """What is asked for, in bytes: the chunks of the columns, and the footer."""
    drawn = np.random.default_rng(1)
    table = pa.table({f"c{at}": drawn.integers(0, 1 << 60, 60_000) for at in range(27)})
    path = tmp_path / "wide.parquet"
    pq.write_table(table, path, row_group_size=15_000, use_dictionary=False)
    store.upload_file(str(path), "shop", "wide.parquet")
    fetched: list[int] = []
    range_of = boto3_client.Client.get_range

    def counted(client: Any, request: Any, start: int, end: int) -> bytes:
        fetched.append(end - start)
        return range_of(client, request, start, end)

    monkeypatch.setattr(boto3_client.Client, "get_range", counted)
    reader = dp.ReadRows("s3://shop/wide.parquet", ["c1", "c9", "c20"])
    found = pa.Table.from_batches(reader.here())
    assert found.equals(table.select(["c1", "c9", "c20"]))
    size = path.stat().st_size
    assert size > 12 << 20 and sum(fetched) < size / 9 * 1.2, (sum(fetched), size)


def test_a_silent_server_ends_the_job_in_bounded_time(tmp_path, refused, monkeypatch):
    monkeypatch.setattr(open_files, "PATIENCE", 0.6)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        words = ["--output", "s3://shop/o.csv", *ASKED, "--delta", "1e-6", *RUN]
        source = write(tmp_path / "in.csv", [{"visitor": 1, "day": 1}])
        start = time.monotonic()
        for given in (["--input", source], ["--config", "s3://shop/r.yaml", "--input", source]):
            line = refused(aggregate, *given, *words, f"--s3_endpoint_url={address}", *KEYS)
            assert "it does not answer within 1 s" in line
        assert time.monotonic() - start < 30
