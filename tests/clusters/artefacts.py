"""The jars of the clusters: the versions, the sha256 of each, and their download."""

import concurrent.futures
import csv
import hashlib
import os
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

TABLE = Path(__file__).parent / "artefacts.tsv"
"""Every artefact: the clusters that need it, its sha256, and its path in a Maven repository."""
JARS = Path(__file__).parents[2] / "build" / "jars"
CENTRAL = "https://repo1.maven.org/maven2"
DOWNLOADS = 8  # at once
SECONDS = 300


class ClusterError(Exception):
    """What is missing or went wrong, in one line."""


def class_path(cluster: str) -> str:
    """Return the class path of a cluster; downloads the jars that are not there yet.

    Raises:
        ClusterError: if a jar cannot be downloaded, or is not the one of the table.
    """
    with TABLE.open(newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    wanted = [row for row in rows if cluster in row["clusters"].split()]
    with concurrent.futures.ThreadPoolExecutor(DOWNLOADS) as pool:
        jars = list(
            pool.map(_jar, (row["path"] for row in wanted), (row["sha256"] for row in wanted))
        )
    return os.pathsep.join(str(jar) for jar in jars)


def _jar(path: str, digest: str) -> Path:
    """Return a verified jar: one with another content is downloaded again, and then refused."""
    jar = JARS / Path(path).name
    if jar.exists() and hashlib.sha256(jar.read_bytes()).hexdigest() == digest:
        return jar
    content = _download(path)
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise ClusterError(f"{path} must have the sha256 {digest} of {TABLE.name}, not {found}.")
    JARS.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=JARS, delete=False) as part:
        part.write(content)
    os.replace(part.name, jar)
    return jar


def _download(path: str) -> bytes:
    address = f"{os.environ.get('MAVEN_REPOSITORY', CENTRAL).rstrip('/')}/{path}"
    try:
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, TimeoutError) as error:
        raise ClusterError(
            f"{address} cannot be downloaded ({error}); name another repository by MAVEN_REPOSITORY."
        ) from None
