"""What tests ask of a server of objects: its client's settings, a bucket, and the names in it."""

import abc
import json
import urllib.parse
import urllib.request
from pathlib import Path
from typing import ClassVar

import boto3

from tests.clusters.processes import Processes, free_ports, listens


class Server(abc.ABC):
    """A server that runs.

    Args:
        started: starts it.
        programs: the folder of its program.
        data: the folder of its objects.
    """

    scheme: ClassVar[str]

    def __init__(self, started: Processes, programs: Path, data: Path) -> None:
        data.mkdir()
        self.data, self._started, [self._port] = data, started, free_ports(1)
        self.address = f"http://127.0.0.1:{self._port}"
        started.start(self.scheme, self.command(programs))
        self.wait()

    @abc.abstractmethod
    def command(self, programs: Path) -> list[str]:
        """Return how it is started."""

    @property
    def options(self) -> list[str]:
        """The pipeline options by which Beam finds it, where variables do not say it."""
        return []

    def wait(self) -> None:
        """Wait until it listens."""
        self._started.wait_until(lambda: listens(self._port), self.scheme)

    def kill(self) -> None:
        """Kill it."""
        self._started.kill(self.scheme)

    def start_again(self) -> None:
        """Start it again, with the objects that it had."""
        self._started.start_again(self.scheme)
        self.wait()


class S3(Server):
    """versitygw over a folder."""

    scheme = "s3"

    def command(self, programs: Path) -> list[str]:
        """Return how it is started."""
        keys = ["--access", "a", "--secret", "bbbbbbbb"]
        return [f"{programs}/versitygw", *keys, "--port", f":{self._port}", "posix", f"{self.data}"]

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which clients find it."""
        return {
            "AWS_ENDPOINT_URL_S3": self.address,
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "bbbbbbbb",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    @property
    def options(self) -> list[str]:
        """The pipeline options by which Beam finds it."""
        keys = ["--s3_access_key_id=a", "--s3_secret_access_key=bbbbbbbb"]
        return [f"--s3_endpoint_url={self.address}", *keys, "--s3_region_name=us-east-1"]

    def create_bucket(self) -> None:
        """Make the bucket."""
        boto3.client("s3").create_bucket(Bucket="shop")

    def put(self, name: str, content: bytes) -> None:
        """Put an object."""
        boto3.client("s3").put_object(Bucket="shop", Key=name, Body=content)

    def names(self) -> set[str]:
        """Return the names of all objects."""
        found = boto3.client("s3").list_objects_v2(Bucket="shop").get("Contents", [])
        return {item["Key"] for item in found}


class Google(Server):
    """fake-gcs-server over a folder."""

    scheme = "gs"

    def command(self, programs: Path) -> list[str]:
        """Return how it is started."""
        place = ["-host", "127.0.0.1", "-port", f"{self._port}", "-scheme", "http"]
        return [f"{programs}/fake-gcs-server", *place, "-filesystem-root", f"{self.data}"]

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which clients find it."""
        return {"STORAGE_EMULATOR_HOST": self.address}

    def create_bucket(self) -> None:
        """Make the bucket."""
        self._post("/storage/v1/b?project=p", json.dumps({"name": "shop"}).encode())

    def put(self, name: str, content: bytes) -> None:
        """Put an object."""
        quoted = urllib.parse.quote(name, safe="")
        self._post(f"/upload/storage/v1/b/shop/o?uploadType=media&name={quoted}", content)

    def names(self) -> set[str]:
        """Return the names of all objects."""
        with urllib.request.urlopen(f"{self.address}/storage/v1/b/shop/o") as answer:
            return {item["name"] for item in json.load(answer).get("items", [])}

    def _post(self, path: str, content: bytes) -> None:
        asked = urllib.request.Request(
            self.address + path, content, {"Content-Type": "application/json"}
        )
        urllib.request.urlopen(asked).close()
