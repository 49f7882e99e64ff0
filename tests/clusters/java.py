"""The Java that the clusters run on."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.clusters.artefacts import ClusterError

VERSIONS = (11, 17)
NEEDED = "Java 11 or 17 with its compiler (a JDK) is needed"
OPEN = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio",
    "java.text", "java.time", "java.util", "java.util.concurrent", "java.util.concurrent.atomic",
    "java.util.concurrent.locks", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action", "sun.util.calendar",
)  # fmt: skip
"""Packages of Java that Flink and Spark read by reflection, as their own start scripts say."""
SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+IgnoreUnrecognizedVMOptions")
"""For many short-lived JVMs on few cores."""


def options() -> list[str]:
    """Return the options of each JVM, without its memory."""
    return [*SMALL, *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPEN)]


def java() -> str:
    """Return the path of Java: of JAVA_HOME, or the one on the PATH.

    Raises:
        ClusterError: if there is none, or one that the clusters cannot use.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME={home} has no bin/java" if home else "none is on the PATH"
        raise ClusterError(f"{NEEDED}: {where}.")
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', said.stderr)
    if version is None or int(version[1]) not in VERSIONS:
        heard = f"version {version[1]}" if version else "no version"
        raise ClusterError(f"{NEEDED}: {found} has {heard}; name another by JAVA_HOME.")
    if not (Path(found).resolve().parent / "javac").exists():
        raise ClusterError(f"{NEEDED}: {found} has none; name another by JAVA_HOME.")
    return found
