"""Draws that are kept: what a run draws, in a folder before anything reads it; and its options.

A barrier (`stages.draw_once`) makes the steps behind a draw read what was stored. A runner that
loses what it stored, and begins again, draws again: a second release, which nobody paid for. With a
folder that outlives every process the draw is *committed*: its content goes to a file of another
name, is forced to the disk, and is then linked under the name of the draw. A link is made whole or
not at all, and never where the name exists. So one attempt commits, and all attempts go on with
what its file holds. An attempt that dies before its link has shown nothing to anybody, and each
later attempt reads the same draw.

*What a folder holds* is what the run releases, and nothing of its rows. An attempt that is killed
before its link can leave a file `*.partial` with numbers that nobody has seen. They would be a
second draw for whoever reads them, so the folder of a run is open to its owner only (0700), as the
input is. Delete it when the job is over.

*What a folder must be.* All workers and the machine that builds the pipeline see it under one path.
The folder of a run is made when the pipeline is built, and never by a worker: a worker that does
not see it fails. Local file systems and NFS link exactly once. Object stores have no links: they
are refused.

*Who wrote it.* Each file begins with an HMAC-SHA256 of its name and content under a secret of the
run. A file that is cut, or that somebody else wrote, fails the job before it is opened. So does a
folder of the same name that somebody put in the place of the run's: nothing is drawn where the
first file of the run is not. The owner of the folder can still delete a draw or move it away, and
then has a second one, as by running the job again; so it is open to nobody else.

*A second run.* `run()` of a pipeline can be called again, and Beam begins anew: each draw is drawn
again, a second release for one charge. With a folder the second run reads the draws of the first.
Without one it is refused where it is called, by replacing `run` of that pipeline: workers cannot
tell a second run from a bundle that is tried again, and Beam tells no transform that a run begins.
A run that does not call that method is not seen: that of a copy (`Pipeline.from_runner_api`), that
of a template, and that of a runner which is given the pipeline.
"""

import argparse
import contextlib
import hmac
import os
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.columns.layout import fresh_key
from beam_dp.transforms.stages import noise_off

_OPTION = "the pipeline", "--draws_folder"
_TAG_BYTES = 32
_FIRST = "made"
"""The first file in the folder of a run."""
_Drawn = TypeVar("_Drawn")


@dataclass(frozen=True)
class Barriers:
    """No folder: that a draw happens once is left to the barrier behind it."""

    def once(self, name: str, draw: Callable[[], _Drawn]) -> _Drawn:
        """Draw."""
        return draw()


@dataclass(frozen=True)
class DrawsFolder:
    """The folder of one run.

    Attributes:
        path: the folder.
        secret: what its files are authenticated by.
    """

    path: str
    secret: bytes = field(repr=False)

    @classmethod
    def made_in(cls, given: str | os.PathLike[str]) -> "DrawsFolder":
        """Make the folder of a run.

        Args:
            given: the folder of all runs; it is made if it does not exist.

        Raises:
            ValueError: if it is no folder in which files can be written and linked.
        """
        folder = os.fspath(given)
        checks.require(
            FileSystems.get_scheme(folder) is None,
            *_OPTION,
            f"name a folder that is mounted on all workers, not {folder!r}: a draw is committed "
            "by a link, which object stores do not have",
            "Name a folder on NFS, or on the one machine that the job runs on.",
        )
        try:
            os.makedirs(folder, exist_ok=True)
            path = tempfile.mkdtemp(prefix="run-", dir=os.path.abspath(folder))
            made = cls(path, fresh_key())
            made._commit(_FIRST, pickle.dumps(None))
            made._read(_FIRST)
        except (OSError, ValueError) as error:
            raise checks.ParameterError(
                *_OPTION,
                f"name a folder where files can be written and linked, not {folder!r}: "
                f"{getattr(error, 'strerror', error)}",
                "Name another folder.",
            ) from None
        return made

    def once(self, name: str, draw: Callable[[], _Drawn]) -> _Drawn:
        """Return what was committed under this name; if nothing was, draw and commit that.

        Args:
            name: of the draw: a constant, and a number of the plan.
            draw: draws; it is called once at most.

        Raises:
            RuntimeError: if the file was not written by this run.
            FileNotFoundError: on a worker that does not share the folder; if another one stands in
                its place.
        """
        if not os.path.exists(self._file(name)):
            self._read(_FIRST)
            self._commit(name, pickle.dumps(draw(), pickle.HIGHEST_PROTOCOL))
        drawn: _Drawn = self._read(name)
        return drawn

    def _read(self, name: str) -> Any:
        """Return what was committed under a name."""
        with open(self._file(name), "rb") as file:
            tag, content = file.read(_TAG_BYTES), file.read()
        if not hmac.compare_digest(tag, self._tag(name, content)):
            raise RuntimeError(f"A file in {self.path} was not written by this run.")
        return pickle.loads(content)

    def _commit(self, name: str, content: bytes) -> None:
        """Put the content under the name, unless another attempt was first."""
        number, partial = tempfile.mkstemp(".partial", dir=self.path)
        try:
            with open(number, "wb") as file:
                file.write(self._tag(name, content) + content)
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(partial, self._file(name))
        finally:
            os.remove(partial)
        _force(self.path)

    def _file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _tag(self, name: str, content: bytes) -> bytes:
        return hmac.digest(self.secret, f"{name}\0".encode() + content, "sha256")


Draws = Barriers | DrawsFolder
"""What keeps the draws of a run."""


def _force(folder: str) -> None:
    """Force the names in a folder to the disk, where the operating system can."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


RESTARTING = ("FlinkRunner", "PortableRunner")
"""Runners whose cluster may begin again with the steps before a barrier. A `PortableRunner` may be
Flink's."""
_RULE = (
    "have --draws_folder on {}: a cluster that loses a worker and begins again would draw again, "
    "and that is a second release"
)
_HINT = (
    "Name a folder that all workers share by --draws_folder; or say --cluster_never_restarts where "
    "the cluster has no restart strategy."
)
_TRIAL = (
    "a pipeline in without_noise()",
    "have no --draws_folder: it would keep numbers without noise",
    "Leave it out in unit tests.",
)
_ONCE = "be run once, not twice: a second run draws again, which is a second release"
_ANOTHER = (
    "Build another pipeline with a budget of its own; or name a folder by --draws_folder, where a "
    "second run reads what the first one drew."
)


class DrawsOptions(PipelineOptions):
    """Where draws are kept. Beam reads the flags, for all its runners and programs.

    Attributes:
        draws_folder: a folder that all workers share; None: draws are not kept.
        cluster_never_restarts: the user says so: if the cluster loses a worker, the job fails, and
            is not begun again.
    """

    draws_folder: str | None
    cluster_never_restarts: bool

    @classmethod
    def _add_argparse_args(cls, parser: argparse.ArgumentParser) -> None:
        """Add the flags."""
        parser.add_argument(
            "--draws_folder",
            help="A folder that all workers share: what is drawn is kept there before it is read, "
            "so that a cluster that begins again does not draw again.",
        )
        parser.add_argument(
            "--cluster_never_restarts",
            action="store_true",
            help="The cluster has no restart strategy: a job that loses a worker fails.",
        )


def draws_of(subject: str, pipeline: beam.Pipeline) -> Draws:
    """Return what keeps the draws of a transform; without a folder its pipeline can run only once.

    Args:
        subject: the name that errors begin with.
        pipeline: its options and its runner decide.

    Raises:
        ValueError: if the runner may begin again, and no folder was given; or for a folder in
            `without_noise()`: it would keep what is not private.
    """
    options = pipeline.options.view_as(DrawsOptions)
    if options.draws_folder is not None:
        checks.require(not noise_off.applies(), subject, *_TRIAL)
        return DrawsFolder.made_in(options.draws_folder)
    runner = type(pipeline.runner).__name__
    is_safe = runner not in RESTARTING or options.cluster_never_restarts
    checks.require(is_safe, subject, "the pipeline", _RULE.format(runner), _HINT)
    if not noise_off.applies() and not isinstance(pipeline.run, _RunOnce):
        vars(pipeline)["run"] = _RunOnce(subject, pipeline.run)
    return Barriers()


class _RunOnce:
    """`run` of a pipeline, once: a second call is refused, for even a failed run may have drawn."""

    def __init__(self, subject: str, run: Callable[..., Any]) -> None:
        self._subject, self._run, self._begun = subject, run, False

    def __call__(self, *given: Any, **named: Any) -> Any:
        checks.require(not self._begun, self._subject, "the pipeline", _ONCE, _ANOTHER)
        self._begun = True
        return self._run(*given, **named)
