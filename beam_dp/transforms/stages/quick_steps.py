"""Steps that Beam builds quickly: it is told what it would look for.

While Beam builds and starts a pipeline, it asks eight times which states and timers a step has.
Each time it reads the signatures of all methods that `dir` names, some thirty, though only five are
ever called with states and timers. Three times it derives the type of the output from annotations,
and each comparison of two types parses the options of the pipeline anew. Together that is
a third of what a small job takes. Here `dir` names those of the five that the step has of its own,
and nothing is derived: where the type of the output matters to coders, the step says it by
`with_output_types`.
"""

from collections.abc import Callable
from typing import Any

import apache_beam as beam
from apache_beam.typehints import typehints

_CALLED = ["process", "setup", "start_bundle", "finish_bundle", "teardown"]
"""The methods of a `DoFn` that a runner calls for elements and bundles."""


class QuickStep(beam.DoFn):
    """A `DoFn` without states and timers, whose output has the type that is said, else any."""

    def __dir__(self) -> list[str]:
        own, given = type(self), beam.DoFn
        return [name for name in _CALLED if getattr(own, name) is not getattr(given, name)]

    def default_type_hints(self) -> None:
        """Derive no types from annotations."""

    def infer_output_type(self, input_type: object) -> object:
        """Return the type of the output where none is said."""
        return typehints.Any


class _Asking(QuickStep):
    """Ask a function for the one element, or for the elements, that come of each element."""

    def __init__(self, function: Callable[..., Any], several: bool) -> None:
        self._function, self._several = function, several

    def process(self, element: Any, *given: Any, **named: Any) -> Any:
        """Take one element."""
        found = self._function(element, *given, **named)
        return found if self._several else (found,)


def mapped(function: Callable[..., Any], *given: Any, **named: Any) -> beam.ParDo:
    """Return the step that `beam.Map` would be.

    Args:
        function: makes one element of another.
        given: its further arguments, also side inputs.
        named: the same by name.
    """
    return beam.ParDo(_Asking(function, several=False), *given, **named)


def flat_mapped(function: Callable[..., Any], *given: Any, **named: Any) -> beam.ParDo:
    """Return the step that `beam.FlatMap` would be.

    Args:
        function: makes elements of an element.
        given: its further arguments, also side inputs.
        named: the same by name.
    """
    return beam.ParDo(_Asking(function, several=True), *given, **named)
