"""What a job spares Beam: it owns its process, which a library does not.

Each step of a pipeline asks for several views of its options, and Beam parses the options anew for
each. And the thread that samples what a stage is doing sleeps for up to a sixth of the time that
the stage has taken, 0.2 s at most, before it notices that the stage is over, which waits for it.
"""

import contextlib
from collections.abc import Iterator
from typing import TypeVar

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.worker import statesampler

_LONGEST_MS = 20
_Options = TypeVar("_Options", bound=PipelineOptions)


class JobOptions(PipelineOptions):
    """Options that make one view for each class of options; all views share their values."""

    def view_as(self, cls: type[_Options]) -> _Options:
        """Return the view for a class."""
        views = vars(self).setdefault("_views", {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        view: _Options = views[cls]
        return view


@contextlib.contextmanager
def short_waits() -> Iterator[None]:
    """Let the thread of a stage look every 20 ms at least, while the block runs."""
    made, before = (
        statesampler.StateSampler.__init__,
        statesampler.StateSampler.__init__.__defaults__,
    )
    if before == (statesampler.DEFAULT_SAMPLING_PERIOD_MS,):
        made.__defaults__ = (_LONGEST_MS,)
    try:
        yield
    finally:
        made.__defaults__ = before
