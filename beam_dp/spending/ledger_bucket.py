"""The file of a ledger in a bucket of S3 or Google Cloud Storage, changed by conditional writes.

A job reads the object with its version, and writes it only where it still has that version: the
`ETag` of S3 (`If-Match`), the generation of Google Cloud Storage; a new one only where there is
none. Where another job was first, the change is made again of what that one wrote. So jobs that
charge at once never lose a charge, and an object is never half written. Where the answer to a write
is lost, the write is asked for again and refused; the object then holds what was to be written. No
other job writes the same, for each charge has an id: equal jobs of one second are two charges.

Other stores speak these protocols too, and may ignore conditions. So each write is asked for twice,
and must be refused the second time: else the job is refused.

Source: conditional requests, RFC 9110, section 13; https://cloud.google.com/storage/docs/
request-preconditions; https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
"""

import functools
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

from beam_dp.mechanisms.numerics import checks
from beam_dp.spending.ledger_file import PATIENCE

PAUSE = 0.2
"""How many seconds a job waits before it makes a change again."""
_CHARGED = "This run is charged already"
_OTHER_STORE = f"It would lose charges of jobs at once: take a file, or another store. {_CHARGED}"
_EXTRAS = {"s3": '"apache-beam[aws]"', "gs": '"apache-beam[gcp]"'}
_RAISED = (Exception,)
Made = TypeVar("Made")


class S3Object:
    """An object of S3; credentials are those of boto3, as in the environment."""

    def __init__(self, bucket: str, name: str) -> None:
        import boto3
        from botocore.config import Config

        retries: Any = {"max_attempts": 3}
        config = Config(connect_timeout=10, read_timeout=20, retries=retries)
        self._client = boto3.client("s3", config=config)
        self._place = {"Bucket": bucket, "Key": name}

    def read(self) -> tuple[bytes | None, str]:
        """Return the content and its version; None where there is no object."""
        try:
            found = self._client.get_object(**self._place)
        except self._client.exceptions.NoSuchKey:
            return None, ""
        return found["Body"].read(), found["ETag"]

    def write(self, content: bytes, version: str) -> bool:
        """Write the content if the object has that version still; return whether it was written."""
        from botocore.exceptions import ClientError

        condition = {"IfMatch": version} if version else {"IfNoneMatch": "*"}
        try:
            self._client.put_object(**self._place, Body=content, **condition)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] in (409, 412):
                return False
            raise
        return True


class GoogleObject:
    """An object of Google Cloud Storage; credentials are those of the environment."""

    def __init__(self, bucket: str, name: str) -> None:
        from google.cloud import storage

        self._bucket, self._name = storage.Client().bucket(bucket), name

    def read(self) -> tuple[bytes | None, int]:
        """Return the content and its version; None where there is no object."""
        from google.api_core.exceptions import NotFound, PreconditionFailed

        start = time.monotonic()
        while True:
            found = self._bucket.get_blob(self._name)  # a known blob asks for its own generation
            if found is None:
                self._bucket.reload()  # or there is no bucket
                return None, 0
            version = found.generation
            try:
                return found.download_as_bytes(if_generation_match=version), version
            except (NotFound, PreconditionFailed):  # another job has written since
                if time.monotonic() - start > PATIENCE:
                    raise
                time.sleep(PAUSE)

    def write(self, content: bytes, version: int) -> bool:
        """Write the content if the object has that version still; return whether it was written."""
        from google.api_core.exceptions import PreconditionFailed

        try:
            blob = self._bucket.blob(self._name)
            blob.upload_from_string(content, if_generation_match=version)
        except PreconditionFailed:
            return False
        return True


_KINDS: dict[str, Callable[[str, str], Any]] = {"s3": S3Object, "gs": GoogleObject}


def is_bucket(path: object) -> bool:
    """Tell whether a path is that of an object: `s3://bucket/name` or `gs://bucket/name`."""
    return isinstance(path, str) and path.partition("://")[0] in _KINDS


def text_of(path: str) -> str | None:
    """Return the content of the object; None if there is no object.

    Raises:
        ValueError: it cannot be read.
    """
    content, _ = _tried(path, _object(path).read)
    return None if content is None else content.decode("utf-8", errors="replace")


def changed(path: str, change: Callable[[str | None], tuple[str, Made]]) -> Made:
    """Give the object another content, all of it or nothing, and return what comes with it.

    Args:
        path: the object.
        change: returns, for its content, another one; called again where others change it too.

    Raises:
        ValueError: it cannot be read or written, others change it for longer than `PATIENCE`, or
            its store ignores conditions.
    """
    stored, start = _object(path), time.monotonic()
    written, made = None, None
    while time.monotonic() - start < PATIENCE:
        content, version = _tried(path, stored.read)
        if content and written and content.startswith(written):  # the answer was lost
            return cast("Made", made)
        before = None if content is None else content.decode("utf-8", errors="replace")
        text, made = change(before)
        written = text.encode()
        write = functools.partial(stored.write, written, version)
        if _tried(path, write):
            rule = "be in a store that refuses a write whose condition does not hold"
            again = _tried(path, write, _CHARGED)
            checks.require(not again, "Ledger", f"path {path!r}", rule, _OTHER_STORE)
            return made
        time.sleep(PAUSE)
    rule = f"be changed by fewer jobs at once: it took more than {PATIENCE:.0f} s"
    hint = "Read the ledger, and run again if this run is not charged"
    raise checks.ParameterError("Ledger", f"path {path!r}", rule, hint)


def _object(path: str) -> Any:
    scheme, _, rest = path.partition("://")
    bucket, _, name = rest.partition("/")
    rule = f"be {scheme}://bucket/name, not {path!r}"
    checks.require(bool(bucket and name), "Ledger", "path", rule)
    try:
        return _tried(path, functools.partial(_KINDS[scheme], bucket, name))
    except ImportError:
        rule = f"be in a file system that is installed, not {path!r}"
        hint = f"Write: pip install {_EXTRAS[scheme]}."
        raise checks.ParameterError("Ledger", "path", rule, hint) from None


def _tried(path: str, ask: Callable[[], Made], hint: str = "") -> Made:
    """Return what a store answers; it is asked before the job reads a row."""
    try:
        return ask()
    except (ImportError, checks.ParameterError):
        raise
    except _RAISED as error:
        why = str(error).partition("\n")[0].rstrip(".")
        rule = f"be an object that can be read and written: {why}"
        raise checks.ParameterError("Ledger", f"path {path!r}", rule, hint) from None
